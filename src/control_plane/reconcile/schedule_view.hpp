// What the scheduler is shown: machines, lines, limits, who holds them and who waits, made anew each turn from the jobs,
// the launcher's machines and Batch's yard. Nothing of it is kept, so that no end of a job can be missed.
//
//   lines    one for all training jobs of no queue, which their creators share equally; one for each job queue, with the
//            fair share or the quota shares of its policy
//   limits   vCPU of compute environments, instances of service environments, consumable resources, quotas of a creator
//
// Threads: confined to one. Errors: wait() says why a job cannot stand in line.
// Costs:   some hundred nanoseconds a job; what jobs of one queue have in common is looked up once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/batch.hpp"
#include "domain/job.hpp"
#include "domain/service_quota.hpp"
#include "domain/usage.hpp"
#include "launch/launcher.hpp"
#include "schedule/plan.hpp"

namespace trainyard::reconcile {

// How long what surrounds a run may take.
struct Surroundings {
  Duration launch{};  // until it begins
  Duration stop{};    // from being told to end until it has
  Duration upload{};  // then, of jobs that keep a model
};

class ScheduleView {
 public:
  // Lifetime: all of it outlives the view. `yard`: nullptr: there are no queues.
  ScheduleView(const std::vector<launch::Machine>& machines, const domain::BatchCatalog* yard,
               const domain::Usages& usages, const std::vector<domain::InstanceQuota>& quotas,
               Surroundings surroundings, Instant now);

  // The job's present attempt holds machines, and what it is counted for. Of one that has ended, what is left of it
  // holds machines alone. Requires: it has one.
  void hold(const domain::Job& job);
  // Its hosts wait for the next job that asks for the same. Requires: it keeps hosts.
  void keep(const domain::Job& job);
  // `pools`: jobs whose hosts it may take over. Requires: called in the order of the jobs' numbers.
  // Errors: invalid, in words for its user: it cannot be placed, whatever becomes free.
  Result<void> wait(const domain::Job& job, std::vector<domain::JobNumber> pools);
  // Requires: nothing of it is called afterwards.
  schedule::Snapshot take();

 private:
  // What the jobs that are placed in an environment need: vCPU of a compute environment, or instances of a service
  // environment.
  struct Environment {
    std::string name;
    std::optional<size_t> cpus;                         // the limit; nothing: there is none
    std::vector<std::pair<std::string, size_t>> units;  // of a service environment: unit -> limit
    std::vector<std::string> instance_types;            // of a compute environment
  };
  struct Queue {
    const domain::JobQueue* queue = nullptr;
    size_t line = 0;
    std::vector<size_t> environments;  // that are enabled, in the queue's order
    schedule::Choices choices = {};    // of its jobs that need vCPU alone
  };
  using Instances = std::map<std::string, int64_t>;  // by type

  Queue* queue_of(const domain::Job& job);
  schedule::Line line_of(const domain::JobQueue& queue, const std::vector<size_t>& environments) const;
  std::optional<size_t> compute_environment(const domain::JobKey& key);
  std::optional<size_t> service_environment(const domain::JobKey& key);
  std::optional<size_t> consumable(const domain::JobKey& key);
  std::optional<size_t> quota(const domain::Job& job, const std::string& instance_type);
  size_t add_limit(std::string name, double total, std::string remedy, bool environments = false);
  void stand_in_line(const domain::Job& job, size_t line, std::string& share);
  void tell_shares(size_t line, const domain::JobKey& queue, const domain::SchedulingPolicy* policy);
  void need_instances(const Environment& environment, const Instances& instances,
                      std::vector<schedule::Need>& needs) const;
  void need_quota(const domain::Job& job, const Instances& instances, std::vector<schedule::Need>& needs);
  Result<void> need_consumables(const domain::Job& job, std::vector<schedule::Need>& needs);
  Result<schedule::Choices> choices_of(const domain::Job& job, Queue& queue, const Instances& instances,
                                       const std::vector<schedule::Need>& anywhere);
  Result<schedule::Ask> ask_of(const domain::InstanceGroup& group);
  std::optional<Duration> run_left(const domain::Job& job) const;
  Duration after_run(const domain::Job& job) const;
  std::optional<Instant> ends_by(const domain::Job& job) const;

  const domain::BatchCatalog* yard_;
  const domain::Usages& usages_;
  const std::vector<domain::InstanceQuota>& quotas_;
  const Surroundings surroundings_;
  const Instant now_;
  schedule::Snapshot snapshot_;
  std::map<domain::JobKey, Queue> queues_;
  std::vector<Environment> environments_;
  std::map<domain::JobKey, size_t> compute_environments_, service_environments_;
  std::map<domain::JobKey, size_t> consumables_;
  std::map<std::tuple<std::string, std::string, std::string>, std::optional<size_t>> quota_limits_;
  std::unordered_map<std::string, schedule::Ask> asks_;  // of one host, by instance type
  // By line: who shares it, with what they have used. Only of those with fair share.
  std::vector<std::map<std::string, double>> shares_;
};

// The line of training jobs of no queue.
inline constexpr size_t kLineOfOthers = 0;

}  // namespace trainyard::reconcile
