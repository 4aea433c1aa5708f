// ServedAttempts maps each Slurm job of this server to the attempt that it runs, for jobs that run
// one attempt after another. Agents report it over their links. Slurm does not know it, so a
// restarted server learns it as agents connect.
//
// An order may be lost with its link. Until an agent says Hello for the attempt, the attempt has
// not begun: the order is repeated when the agent is idle again, and an attempt whose job ends
// before that can be started elsewhere.
//
// Threads: confined to the launcher's. Lifetime: links and clock outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "launch/agent_links.hpp"

namespace trainyard::launch {

struct ServedAttempt {
  domain::AttemptId attempt;
  std::string token;
  std::string node;       // "": as Slurm shows it
  uint32_t served = 0;    // attempts that ran in the job before this one
  bool reported = false;  // true: its agent has reported it
  bool begun = true;
  bool idle = false;        // the attempt has ended
  bool keeps_host = false;  // idle
  bool removed = false;     // idle: by control
  Duration time_left{};     // idle: when it became idle
  std::chrono::nanoseconds idle_since{};
  // Not begun: the order and the attempt whose agent gets it.
  AllocationOrder order = {};
};

class ServedAttempts {
 public:
  // `links` is nullptr if no job runs further attempts.
  ServedAttempts(AgentLinks* links, Clock& clock) : links_(links), clock_(clock) {}

  // Records the first attempt of a new job. `node`: "" keeps the known one.
  void begin(uint64_t job, const domain::AttemptId& attempt, std::string token, std::string node);
  // Applies the reports of agents; returns true if there were any. `open`: as AgentLinks::take().
  bool take_reports(std::optional<std::map<uint64_t, OpenAllocation>> open = std::nullopt);
  // Returns nullptr if no agent has reported the attempt of the job.
  const ServedAttempt* find(uint64_t job) const;
  Duration idle(const ServedAttempt& served) const;
  Duration time_left(const ServedAttempt& served) const;

  // Gives an idle job its next attempt. Returns false if its agent is not connected now; then only
  // the job no longer counts as idle. Requires: the job is idle.
  bool give(uint64_t job, const domain::AttemptId& attempt, const std::string& token,
            std::string order, bool same_host);
  // Records that control has removed the ended attempt of an idle job.
  void remove(uint64_t job);
  // Releases an idle job: its agent ends. If the order is lost, the agent ends after its idle time.
  void release(uint64_t job);
  // Removes jobs for which `is_known` returns false.
  void forget(const std::function<bool(uint64_t)>& is_known);
  bool empty() const { return by_job_.empty(); }
  bool any_idle() const;

 private:
  void take(const AllocationReport& report);

  AgentLinks* const links_;
  Clock& clock_;
  std::map<uint64_t, ServedAttempt> by_job_;
};

}  // namespace trainyard::launch
