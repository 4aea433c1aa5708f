// Holds the control plane's state in memory: jobs that may still change, finished jobs that were
// requested recently, resources, and notifiers for the loops. Private to this module.
//
// Threads: described at each class.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_safety.hpp"
#include "batch/catalog.hpp"
#include "domain/job.hpp"
#include "domain/record.hpp"
#include "domain/usage.hpp"
#include "reconcile/guarded_text.hpp"
#include "reconcile/queue_head.hpp"
#include "schedule/plan.hpp"

namespace trainyard::control {

// Notifier wakes a sleeping thread. Threads: any; once set() has returned, the previous function is
// no longer called.
class Notifier {
 public:
  void set(std::function<void()> wake) {
    const MutexLock lock(mutex_);
    wake_ = std::move(wake);
  }
  void notify() {
    const MutexLock lock(mutex_);
    if (wake_) wake_();
  }

 private:
  Mutex mutex_;
  std::function<void()> wake_ GUARDED_BY(mutex_);
};

// WaitingJobs makes jobs with their pending reasons, and caches them: clients describe a waiting
// job again and again, and copying it takes as long as its authentication. Threads: callable from
// anywhere.
class WaitingJobs {
 public:
  struct JobAndReason {
    std::shared_ptr<const domain::Job> job;  // as in the ledger
    schedule::WaitCause cause = {};
    std::string reason;  // as the caller may see it
    bool operator==(const JobAndReason&) const = default;
  };

  std::shared_ptr<const domain::Job> get(JobAndReason given) {
    const auto number = given.job->number;
    {
      const MutexLock lock(mutex_);
      const auto found = made_.find(number);
      if (found != made_.end() && found->second.first == given) return found->second.second;
    }
    auto made = with_reason(given);
    const MutexLock lock(mutex_);
    if (made_.size() >= kJobsMax) made_.clear();  // rare, so that choosing a job is not worth it
    made_.insert_or_assign(number, std::pair(std::move(given), made));
    return made;
  }

 private:
  static constexpr size_t kJobsMax = 256;  // some megabytes at most: jobs are some kilobytes each

  static std::shared_ptr<const domain::Job> with_reason(const JobAndReason& given) {
    auto job = std::make_shared<domain::Job>(*given.job);
    std::string& message = job->transitions.back().message;
    if (job->state == domain::JobState::active) {
      message += "; " + given.reason;
      return job;
    }
    const std::string_view code = job->spec.queue ? reconcile::wait_code(given.cause) : "";
    job->wait_reason = code.empty() ? given.reason : std::string(code) + " - " + given.reason;
    message = job->attempts.empty() ? given.reason : message + "; " + given.reason;
    return job;
  }

  Mutex mutex_;
  std::map<domain::JobNumber, std::pair<JobAndReason, std::shared_ptr<const domain::Job>>> made_
      GUARDED_BY(mutex_);
};

// Live holds the jobs in memory: unfinished jobs, and finished jobs that keep hosts or of which the
// launcher still lists agents. Threads: guarded by its own lock; written by the committing thread
// (pending reasons by the reconciling thread).
class Live {
 public:
  // Returns a job with its pending reason, which names other jobs only if `may_see` returns true;
  // it is called without the lock.
  std::shared_ptr<const domain::Job> find(domain::JobNumber number,
                                          const reconcile::MaySeeJob& may_see) const {
    std::shared_ptr<const domain::Job> job;
    schedule::Wait wait;
    {
      const ReaderLock lock(mutex_);
      const auto found = jobs_.find(number);
      if (found == jobs_.end()) return nullptr;
      job = found->second;
      const auto reason = reasons_.find(number);
      if (reason == reasons_.end()) return job;
      wait = reason->second;
    }
    const std::string reason = reconcile::reveal(wait.reason.str(), [&](domain::JobNumber other) {
      if (other == number) return true;
      const auto named = stored(other);
      return named && may_see(*named);
    });
    return shown_.get({std::move(job), wait.cause, reason});
  }
  std::shared_ptr<const domain::Job> find(const domain::JobKey& key,
                                          const reconcile::MaySeeJob& may_see) const {
    const auto number = number_of(key);
    return number ? find(*number, may_see) : nullptr;
  }
  std::optional<domain::JobNumber> number_of(const domain::JobKey& key) const {
    const ReaderLock lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return std::nullopt;
    return found->second;
  }
  // Returns the job as in the ledger, without the pending reason.
  std::shared_ptr<const domain::Job> stored(domain::JobNumber number) const {
    const ReaderLock lock(mutex_);
    const auto found = jobs_.find(number);
    return found == jobs_.end() ? nullptr : found->second;
  }
  std::vector<std::shared_ptr<const domain::Job>> all() const {
    const ReaderLock lock(mutex_);
    std::vector<std::shared_ptr<const domain::Job>> all;
    all.reserve(jobs_.size());
    for (const auto& [number, job] : jobs_) all.push_back(job);
    return all;
  }
  void put(std::vector<std::shared_ptr<const domain::Job>> jobs) {
    const WriterLock lock(mutex_);
    for (auto& job : jobs) {
      by_key_[job->key] = job->number;
      if (job->state != domain::JobState::waiting) reasons_.erase(job->number);
      // A job that was never placed has no hosts.
      if (job->finished() && job->attempts.empty()) {
        by_key_.erase(job->key);
        jobs_.erase(job->number);
      } else {
        jobs_[job->number] = std::move(job);
      }
    }
  }
  void forget(domain::JobNumber number) {
    const WriterLock lock(mutex_);
    const auto found = jobs_.find(number);
    if (found == jobs_.end()) return;
    by_key_.erase(found->second->key);
    jobs_.erase(found);
  }
  void set_reasons(std::vector<schedule::Wait> waits) {
    const WriterLock lock(mutex_);
    reasons_.clear();
    for (schedule::Wait& wait : waits) {
      const auto found = jobs_.find(wait.job);
      // An active job has a reason while the system below the launcher has not started it yet.
      if (found != jobs_.end() && (found->second->state == domain::JobState::waiting ||
                                   found->second->state == domain::JobState::active))
        reasons_[wait.job] = std::move(wait);
    }
  }

 private:
  mutable SharedMutex mutex_;
  std::map<domain::JobNumber, std::shared_ptr<const domain::Job>> jobs_ GUARDED_BY(mutex_);
  std::map<domain::JobKey, domain::JobNumber> by_key_ GUARDED_BY(mutex_);
  // Pending reasons are computed again by each reconcile_step, so the ledger does not store them.
  std::map<domain::JobNumber, schedule::Wait> reasons_ GUARDED_BY(mutex_);
  mutable WaitingJobs shown_;
};

// Recent caches finished jobs that were requested recently: they never change, and reading one from
// the tables takes as long as the rest of a Describe.
class Recent {
 public:
  std::shared_ptr<const domain::Job> find(const domain::JobKey& key) {
    const MutexLock lock(mutex_);
    const auto found = jobs_.find(key);
    return found == jobs_.end() ? nullptr : found->second;
  }
  void put(std::shared_ptr<const domain::Job> job) {
    const MutexLock lock(mutex_);
    if (jobs_.size() >= kJobsMax) jobs_.clear();  // rare, so that choosing a job is not worth it
    jobs_[job->key] = std::move(job);
  }

 private:
  static constexpr size_t kJobsMax = 256;  // some megabytes at most: jobs are some kilobytes each
  Mutex mutex_;
  std::map<domain::JobKey, std::shared_ptr<const domain::Job>> jobs_ GUARDED_BY(mutex_);
};

// UsageIndex holds the usage of the shares of each queue, as in the ledger. Threads: guarded by its
// own lock; written by the committing thread.
class UsageIndex {
 public:
  domain::Usages all() const {
    const MutexLock lock(mutex_);
    return usages_;
  }
  std::optional<domain::Usage> find(const domain::ShareKey& share) const {
    const MutexLock lock(mutex_);
    const auto found = usages_.find(share);
    return found == usages_.end() ? std::nullopt : std::optional(found->second);
  }
  // Returns the usage of the shares of one queue.
  std::vector<std::pair<domain::ShareKey, domain::Usage>> of(const domain::JobKey& queue) const {
    const MutexLock lock(mutex_);
    std::vector<std::pair<domain::ShareKey, domain::Usage>> found;
    for (auto each = usages_.lower_bound({queue, ""});
         each != usages_.end() && each->first.queue == queue; ++each)
      found.push_back(*each);
    return found;
  }
  void put(const std::vector<std::pair<domain::ShareKey, std::optional<domain::Usage>>>& changes) {
    const MutexLock lock(mutex_);
    for (const auto& [share, usage] : changes) {
      if (usage)
        usages_[share] = *usage;
      else
        usages_.erase(share);
    }
  }

 private:
  mutable Mutex mutex_;
  domain::Usages usages_ GUARDED_BY(mutex_);
};

// SharedCatalog holds the queues and environments. Threads: guarded by its own lock; a catalog that
// get() returned never changes.
class SharedCatalog {
 public:
  std::shared_ptr<const batch::Catalog> get() const {
    const MutexLock lock(mutex_);
    return catalog_;
  }
  void put(std::shared_ptr<const batch::Catalog> catalog) {
    const MutexLock lock(mutex_);
    catalog_ = std::move(catalog);
  }
  void put(batch::Catalog catalog) {
    put(std::make_shared<const batch::Catalog>(std::move(catalog)));
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const batch::Catalog> catalog_ GUARDED_BY(mutex_) =
      std::make_shared<batch::Catalog>();
};

// CurrentRecords holds the API layer's records. Threads: guarded by its own lock; records that
// get() returned never change.
class CurrentRecords {
 public:
  std::shared_ptr<const domain::Records> get() const {
    const MutexLock lock(mutex_);
    return records_;
  }
  void put(std::shared_ptr<const domain::Records> records) {
    const MutexLock lock(mutex_);
    records_ = std::move(records);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const domain::Records> records_ GUARDED_BY(mutex_) =
      std::make_shared<const domain::Records>();
};

}  // namespace trainyard::control
