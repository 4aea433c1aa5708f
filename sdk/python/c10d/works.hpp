// An operation that torch was promised, whose end completes a future. DDP waits for the future
// while the backward pass goes on. A StartedWork is work of a worker: whoever calls wait() carries
// it out itself, if nobody has begun it.
//
// Threads: wait() and the questions from anywhere; the future completes on the thread that carried
// the work out.
// Errors:  what it failed with, or `doing` threw, at wait() and from the future.
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

// A worker that settle() knows.
std::shared_ptr<Worker> new_worker();
// Waits until what this process has started was told, for its end (Worker::settle). Requires:
// Python's lock is not held.
void settle_all();

class PromisedWork : public c10d::Work {
 public:
  PromisedWork(int rank, c10d::OpType type, const char* title, Tensors result);

  // Its end; a failure unless null. Requires: called once, and not while others wait for the
  // calling thread.
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

// A receive, which knows the rank that sent.
class ReceivedWork : public PromisedWork {
 public:
  using PromisedWork::PromisedWork;
  void came_from(int rank) { source_ = rank; }
  int sourceRank() const override { return source_; }  // -1 until a message was taken

 private:
  std::atomic<int> source_ = -1;
};

class StartedWork : public PromisedWork {
 public:
  StartedWork(int rank, c10d::OpType type, const char* title, std::shared_ptr<Worker> worker,
              Tensors result);

  // Hands `doing` to the worker, which begins it as `start` says. Requires: called once.
  void begin(const c10::intrusive_ptr<StartedWork>& self, std::function<void()> doing,
             Worker::Start start);

  bool wait(std::chrono::milliseconds timeout) override;

 private:
  // shared with the group, which ends it: whoever is last frees it
  const std::shared_ptr<Worker> worker_;
  std::shared_ptr<Worker::Task> task_;
  std::exception_ptr failure_;  // written by the work, read after it
};

}  // namespace trainyard::sdk
