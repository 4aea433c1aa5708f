// ScheduleView builds the scheduler's snapshot: machines, queues, limits, the jobs that hold them
// and the jobs that wait. Each iteration builds it again from the jobs, the launcher's machines and
// Batch's resources, so that no end of a job can be missed.
//
//   queues   one for all training jobs without a queue, whose users have equal shares; one for each
//            job queue, with the fair share or the quota shares of its policy
//   limits   vCPU of compute environments, instances of service environments, consumable resources,
//            quotas of a creator
//
// Names of jobs are guarded, so that a pending reason names a job only to readers that may see it
// (guarded_text.hpp).
//
// Threads: confined to one. Errors: those of wait().
// Costs:   some hundred nanoseconds a job; data that the jobs of a queue share is computed once.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "batch/catalog.hpp"
#include "domain/instance_quota.hpp"
#include "domain/job.hpp"
#include "domain/usage.hpp"
#include "launch/launcher.hpp"
#include "schedule/plan.hpp"
#include "schedule/what_if.hpp"

namespace trainyard::reconcile {

// Returns true if the job may be moved to that queue.
using MayUseQueue = std::function<bool(const domain::JobKey& queue)>;

// Selects whether the name of a limit is guarded by the first job that needs it (guarded_text.hpp).
// The view that explains a waiting job guards names, and adds that job's limits first.
enum class LimitNames { plain, guarded };

// The time limits of the steps before and after a run.
struct Surroundings {
  Duration launch{};  // until the run begins
  Duration stop{};    // from the stop order to the end
  Duration upload{};  // after that, for jobs that upload a model
};

class ScheduleView {
 public:
  // Lifetime: all arguments outlive the view. `catalog` is nullptr if there are no queues.
  ScheduleView(const std::vector<launch::Machine>& machines, const batch::Catalog* catalog,
               const domain::Usages& usages, const std::vector<domain::InstanceQuota>& quotas,
               Surroundings surroundings, Instant now, LimitNames limit_names = LimitNames::plain);

  // Adds what the job's current attempt holds: machines, limits and quota; only machines if the
  // attempt has ended. Requires: the job has an attempt.
  void hold(const domain::Job& job);
  // Adds the job's hosts as a warm pool. Requires: it keeps hosts.
  void keep(const domain::Job& job);
  // Adds a waiting job. `pools`: jobs whose hosts it may take over. Requires: called in the order
  // of the jobs' numbers. Errors: invalid, with a text for its user: it cannot be placed, whatever
  // becomes free.
  Result<void> wait(const domain::Job& job, std::vector<domain::JobNumber> pools);
  // Returns the job with other requests: smaller gangs, smaller instance types, other queues; those
  // nearest to its request first (job_variants.cpp). Leaves out variants that cannot be placed.
  std::vector<schedule::Variant> variants(const domain::Job& job, const MayUseQueue& may_use);
  // Returns the snapshot. Requires: it is the last call.
  schedule::Snapshot take();

 private:
  // The limits of an environment: vCPU of a compute environment, or instances of a service
  // environment.
  struct Environment {
    std::string name;
    std::optional<size_t> cpus;                         // the limit's index; nullopt: unlimited
    std::vector<std::pair<std::string, size_t>> units;  // of a service environment: unit -> limit
    std::vector<std::string> instance_types;            // of a compute environment
  };
  struct QueueView {
    const batch::JobQueue* queue = nullptr;
    size_t index = 0;
    std::vector<size_t> environments;  // the enabled ones, in the queue's order
    schedule::Choices choices = {};    // shared by its jobs that need only vCPU
  };
  using Instances = std::map<std::string, int64_t>;  // by type

  Result<schedule::WaitingJob> waiting_of(const domain::Job& job,
                                          std::vector<domain::JobNumber> pools);
  void add_smaller(const domain::Job& job, std::vector<schedule::Variant>& variants);
  void add_queues(const domain::Job& job, const MayUseQueue& may_use,
                  std::vector<schedule::Variant>& variants);
  void add_variant(const domain::Job& changed, schedule::Change change,
                   std::vector<schedule::Variant>& variants);
  QueueView* queue_view_of(const domain::Job& job);
  schedule::Queue scheduler_queue(const batch::JobQueue& queue,
                                  const std::vector<size_t>& environments) const;
  std::optional<size_t> compute_environment(const domain::JobKey& key);
  std::optional<size_t> service_environment(const domain::JobKey& key);
  std::optional<size_t> consumable(const domain::JobKey& key);
  std::optional<size_t> quota(const domain::Job& job, const std::string& instance_type);
  size_t add_limit(std::string name, double total, std::string remedy, bool environments = false);
  void join_queue(const domain::Job& job, size_t index, std::string& share);
  void set_shares(size_t index, const domain::JobKey& queue, const batch::SchedulingPolicy* policy);
  void need_instances(const Environment& environment, const Instances& instances,
                      std::vector<schedule::Need>& needs) const;
  void need_quota(const domain::Job& job, const Instances& instances,
                  std::vector<schedule::Need>& needs);
  Result<void> need_consumables(const domain::Job& job, std::vector<schedule::Need>& needs);
  Result<schedule::Alternative> needs_of(const domain::Job& job,
                                         const std::vector<domain::InstanceGroup>& groups,
                                         QueueView* queue);
  Result<schedule::Choices> choices_of(const domain::Job& job, QueueView& queue,
                                       const Instances& instances,
                                       const std::vector<schedule::Need>& anywhere);
  Result<schedule::HostRequest> host_request_of(const domain::InstanceGroup& group);
  std::optional<Duration> run_left(const domain::Job& job) const;
  Duration after_run(const domain::Job& job) const;
  std::optional<Instant> ends_by(const domain::Job& job) const;

  const batch::Catalog* catalog_;
  const domain::Usages& usages_;
  const std::vector<domain::InstanceQuota>& quotas_;
  const Surroundings surroundings_;
  const Instant now_;
  const domain::Job* subject_ = nullptr;  // the job that is being added
  const LimitNames limit_names_;
  schedule::Snapshot snapshot_;
  std::map<domain::JobKey, QueueView> queues_;
  std::vector<Environment> environments_;
  std::map<domain::JobKey, size_t> compute_environments_, service_environments_;
  std::map<domain::JobKey, size_t> consumables_;
  std::map<std::tuple<std::string, std::string, std::string>, std::optional<size_t>> quota_limits_;
  // By instance type: the request of one host.
  std::unordered_map<std::string, schedule::HostRequest> requests_;
  // By queue with fair share: its shares and their usage.
  std::vector<std::map<std::string, double>> shares_;
};

// The queue of training jobs without a queue.
inline constexpr size_t kQueueOfOthers = 0;

}  // namespace trainyard::reconcile
