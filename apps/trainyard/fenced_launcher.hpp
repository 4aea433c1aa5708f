// FencedLauncher starts and ends agents only while this server is the writer of its ledger. If the
// lease has expired, because the server was suspended or lost the database, the agents belong to
// the next writer.
//
// Threads, errors: as Launcher; unavailable while this server is not the writer. last_machines() is
// callable from anywhere.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "launch/launcher.hpp"

namespace trainyard::apps {

class FencedLauncher final : public launch::Launcher {
 public:
  // `why_not` returns "" while this server may act.
  FencedLauncher(std::unique_ptr<launch::Launcher> inner, std::function<std::string()> why_not)
      : inner_(std::move(inner)), why_not_(std::move(why_not)) {}

  std::vector<launch::Machine> machines() override {
    std::vector<launch::Machine> found = inner_->machines();
    const MutexLock lock(mutex_);
    last_machines_ = found;
    return found;
  }
  // Returns the result of the last call of machines().
  std::vector<launch::Machine> last_machines() const {
    const MutexLock lock(mutex_);
    return last_machines_;
  }
  std::vector<launch::MachineKind> kinds() override { return inner_->kinds(); }
  std::vector<launch::Agent> list() override { return inner_->list(); }
  void on_change(std::function<void()> changed) override { inner_->on_change(std::move(changed)); }
  Result<void> grow(const std::string& kind, uint32_t machines) override {
    TRY(check());
    return inner_->grow(kind, machines);
  }
  Result<void> shrink(const std::string& machine) override {
    TRY(check());
    return inner_->shrink(machine);
  }
  Result<void> ensure(const launch::Gang& gang) override {
    TRY(check());
    return inner_->ensure(gang);
  }
  Result<void> remove(domain::AttemptId attempt) override {
    TRY(check());
    return inner_->remove(attempt);
  }
  Result<bool> reuse_host(domain::AttemptId from, const launch::Gang& gang) override {
    TRY(check());
    return inner_->reuse_host(from, gang);
  }

 private:
  Result<void> check() const {
    const std::string why = why_not_();
    return why.empty() ? Result<void>() : unavailable(why);
  }

  const std::unique_ptr<launch::Launcher> inner_;
  const std::function<std::string()> why_not_;
  mutable Mutex mutex_;
  std::vector<launch::Machine> last_machines_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::apps
