#include "sdk/python/c10d/works.hpp"

#include <torch/extension.h>

#include <future>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"

namespace trainyard::sdk {
namespace {

// All workers of this process, for settle_all().
Mutex workers_mutex;
std::vector<std::weak_ptr<Worker>> workers GUARDED_BY(workers_mutex);

}  // namespace

std::shared_ptr<Worker> new_worker() {
  auto worker = std::make_shared<Worker>();
  const MutexLock lock(workers_mutex);
  std::erase_if(workers, [](const auto& each) { return each.expired(); });
  workers.push_back(worker);
  return worker;
}

void settle_all() {
  std::vector<std::weak_ptr<Worker>> all;
  {
    const MutexLock lock(workers_mutex);
    all = workers;
  }
  for (const auto& each : all) {
    if (const auto worker = each.lock()) worker->settle();
  }
}

PromisedWork::PromisedWork(int rank, c10d::OpType type, const char* title, Tensors result)
    : Work(rank, type, title),
      result_(std::move(result)),
      future_(
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
}

bool PromisedWork::wait(std::chrono::milliseconds timeout) {
  if (timeout > kNoTimeout) {
    auto reached = std::make_shared<std::promise<void>>();
    future_->addCallback([reached](c10::ivalue::Future&) { reached->set_value(); });
    TORCH_CHECK(reached->get_future().wait_for(timeout) == std::future_status::ready,
                "trainyard: not done within ", timeout.count(), " ms");
  }
  future_->wait();
  if (future_->hasError()) std::rethrow_exception(future_->exception_ptr());
  return true;
}

void PromisedWork::complete(const std::exception_ptr& failure) {
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();
  if (failure) {
    future_->setError(failure);
  } else {
    future_->markCompleted(c10::IValue(result_));
  }
}

StartedWork::StartedWork(int rank, c10d::OpType type, const char* title,
                         std::shared_ptr<Worker> worker, Tensors result)
    : PromisedWork(rank, type, title, std::move(result)), worker_(std::move(worker)) {}

void StartedWork::begin(const c10::intrusive_ptr<StartedWork>& self, std::function<void()> doing,
                        Worker::Start start) {
  task_ = worker_->add(
      [self, doing = std::move(doing)] {
        try {
          const at::NoGradGuard no_gradient;
          doing();
        } catch (...) {
          self->failure_ = std::current_exception();
        }
      },
      [self] { self->complete(self->failure_); }, start);
}

bool StartedWork::wait(std::chrono::milliseconds timeout) {
  if (timeout <= kNoTimeout) worker_->wait(task_);
  return PromisedWork::wait(timeout);
}

}  // namespace trainyard::sdk
