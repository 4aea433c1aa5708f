// A PromisedWork is an operation that completes a torch future when it ends. DDP waits for the
// future while the backward pass continues. A StartedWork is a task of a worker: wait() runs it on
// the calling thread, unless it already runs.
//
// Threads: wait() and the queries from any thread; the future completes on the thread that ran the
// operation.
// Errors:  wait() and the future throw the errors of the operation, and exceptions of `operation`.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>

#include "sdk/python/c10d/tensors.hpp"
#include "sdk/python/c10d/worker.hpp"

namespace trainyard::sdk {

// Returns a worker that settle_all() includes.
std::shared_ptr<Worker> new_worker();
// Calls Worker::settle for all workers of this process, before it exits. Requires: Python's lock is
// not held.
void settle_all();

class PromisedWork : public c10d::Work {
 public:
  PromisedWork(int rank, c10d::OpType type, const char* title, Tensors result);

  // Completes the future, with `failure` unless it is null. Requires: called once, and not while
  // other threads wait for the calling thread.
  void complete(const std::exception_ptr& failure);

  bool isCompleted() override { return future_->completed(); }
  bool isSuccess() const override { return future_->completed() && !future_->hasError(); }
  std::exception_ptr exception() const override {
    return future_->completed() && future_->hasError() ? future_->exception_ptr() : nullptr;
  }
  std::vector<at::Tensor> result() override { return result_; }
  void synchronize() override {}
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  bool wait(std::chrono::milliseconds timeout) override;

 private:
  const Tensors result_;
  const c10::intrusive_ptr<c10::ivalue::Future> future_;
};

// A ReceivedWork is a receive that returns the rank of the sender.
class ReceivedWork : public PromisedWork {
 public:
  using PromisedWork::PromisedWork;
  void set_source(int rank) { source_ = rank; }
  int sourceRank() const override { return source_; }  // -1: no message has arrived

 private:
  std::atomic<int> source_ = -1;
};

class StartedWork : public PromisedWork {
 public:
  StartedWork(int rank, c10d::OpType type, const char* title, std::shared_ptr<Worker> worker,
              Tensors result);

  // Adds `operation` to the worker, with `start`. Requires: called once.
  void begin(const c10::intrusive_ptr<StartedWork>& self, std::function<void()> operation,
             Worker::Start start);

  bool wait(std::chrono::milliseconds timeout) override;

 private:
  // shared with the group, which ends it; the last one frees it
  const std::shared_ptr<Worker> worker_;
  std::shared_ptr<Worker::Task> task_;
  std::exception_ptr failure_;  // written by the operation, read after its end
};

}  // namespace trainyard::sdk
