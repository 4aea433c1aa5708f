// Whether a job may be placed as far as that is not a question of machines: the instances that its service environments
// allow, and the consumable resources that it names. In the order of who goes first: whoever must wait for one of them
// holds back those behind it that need the same one, so that small jobs do not starve a large one, and nobody else.
//
// Threads: confined to one; pure but for what it has given away. Lifetime: the yard outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/consumption.hpp"
#include "domain/batch.hpp"
#include "domain/job.hpp"

namespace trainyard::control {

class Admission {
 public:
  // `jobs`: all that may hold something.
  Admission(const domain::BatchYard& yard, const std::vector<std::shared_ptr<const domain::Job>>& jobs);

  static bool concerns(const domain::Job& job) {
    return job.spec.batch && (job.spec.batch->service || !job.spec.batch->consumes.empty());
  }

  // The service environment that it is placed in; "" for a job that needs none. What it needs is its own from then on.
  // Errors: invalid, with why it waits: what is missing, how much of it, how to have more.
  // Requires: concerns(job), and its queue is there.
  Result<std::string> admit(const domain::Job& job);

 private:
  using Used = std::map<std::string, int64_t>;  // by unit

  Result<std::string> find_environment(const domain::Job& job);
  // "" when there is enough.
  std::string lack_of(const domain::ServiceEnvironment& environment, const domain::Job& job) const;
  std::string lack_of(const domain::JobKey& resource, int64_t quantity) const;

  const domain::BatchYard& yard_;
  std::map<domain::JobKey, Used> used_;  // by service environment
  Consumed consumed_;                    // by those that hold machines
  Consumed given_;                       // since
  std::map<domain::JobKey, std::string> blocked_environments_, blocked_resources_;  // who waits there first
};

}  // namespace trainyard::control
