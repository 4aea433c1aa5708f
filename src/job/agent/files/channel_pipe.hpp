// Streams a channel in Pipe mode into its FIFOs. FirstFailure stores the first error of all
// channels; the agent then ends the process.
//
// Threads: see data/pipe.hpp; FirstFailure is callable from anywhere.
// Lifetime: the constructor's arguments must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/lifecycle.hpp"
#include "base/thread_safety.hpp"
#include "data/contents.hpp"
#include "data/pipe.hpp"

namespace trainyard::agent {

class FirstFailure {
 public:
  void record(Failure failure) {
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  std::optional<Failure> get() const {
    const MutexLock lock(mutex_);
    return failure_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Failure> failure_ GUARDED_BY(mutex_);
};

class ChannelPipe {
 public:
  // `directory`: the directory of the FIFOs, outside the container. `on_failure` receives the
  // errors of data/pipe.hpp.
  ChannelPipe(objects::Objects& objects, Clock& clock, const std::string& directory,
              const std::string& name, data::Contents contents, data::Deal deal, data::Form form,
              std::function<void(Error)> on_failure)
      : contents_(std::move(contents)),
        pipe_(
            directory, name,
            [this, &objects, &clock, deal, form](uint64_t epoch) {
              return std::make_unique<data::Feed>(objects, clock, form,
                                                  contents_.epoch(epoch, deal));
            },
            std::move(on_failure)) {}
  Result<void> start() { return pipe_.start(); }

 private:
  const data::Contents contents_;
  data::Pipe pipe_;
};

}  // namespace trainyard::agent
