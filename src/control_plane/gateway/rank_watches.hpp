// RankWatches follows the ranks of all jobs whose agents are connected, and reports when a fault of
// a rank begins and ends.
//
// Threads: confined to one at a time; the caller passes the time. Errors: check_activity() returns
// corrupt; nothing else fails.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "diagnosis/rank_watch.hpp"
#include "domain/job.hpp"
#include "gateway/agent_session.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// At most this many faults of one attempt are announced when they begin and end, since a job can
// make faults come and go as it likes. Further ones are shown while they last.
inline constexpr size_t kAnnouncedFaultsMax = 1'000;
// Each report makes the server examine all ranks of the job. After it has examined N ranks, it
// ignores reports for N / kRanksInMillisecond milliseconds, so that large jobs cost no more.
inline constexpr size_t kRanksInMillisecond = 20;
// The longest age that an agent may report.
inline constexpr Duration kActivityAgeMax = 365 * 24h;

// Reduces ages and counters of a report to their limits, and removes calls with impossible ranks.
// Errors: corrupt, for too many ranks.
Result<void> check_activity(wire::Activity& activity);
// Adds the time since the report arrived to its ages.
void add_elapsed(wire::Activity& activity, Duration since);

// Returns the line for the job's log: "rank 3 on algo-2 ..".
std::string line_of(const diagnosis::FaultNews& news);

class RankWatches {
 public:
  // Returns true if update() should run for this attempt; false if the last one was too recent.
  bool is_due(const domain::AttemptId& attempt, std::chrono::nanoseconds now) const;
  // Examines the ranks of all connected hosts of an attempt. Returns the faults to announce.
  std::vector<diagnosis::FaultNews> update(const domain::AttemptId& attempt,
                                           const std::vector<diagnosis::RankState>& ranks,
                                           std::chrono::nanoseconds now);
  // Returns the faults that last now.
  std::vector<diagnosis::RankFault> faults(domain::JobNumber job) const;
  // Ends all faults of a job, as when its last agent has disconnected. Returns the ends to
  // announce; the attempt's count of announced faults is kept.
  std::vector<diagnosis::FaultNews> end(domain::JobNumber job, std::chrono::nanoseconds now);
  // Removes a job that has ended.
  void forget(domain::JobNumber job) { watched_.erase(job); }

 private:
  struct Watched {
    uint32_t attempt = 0;
    size_t announced_count = 0;                   // faults whose beginning was announced
    std::vector<diagnosis::RankFault> announced;  // announced faults that have not ended
    std::chrono::nanoseconds next_update{};
    diagnosis::RankWatch watch;
  };
  // Removes beginnings beyond the limit, and ends of faults whose beginning was not announced.
  static void limit_news(Watched& watched, std::vector<diagnosis::FaultNews>& news);

  std::map<domain::JobNumber, Watched> watched_;  // jobs that have not ended
};

// Appends the ranks of a host, with their current ages.
void add_ranks(const AgentSession& session, std::chrono::nanoseconds now,
               std::vector<diagnosis::RankState>& ranks);

}  // namespace trainyard::gateway
