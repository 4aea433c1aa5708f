// Follows the ranks of the jobs whose agents are linked, and tells what slows each job down.
//
// Threads: confined to one at a time; the caller passes the time. Errors: of check(), corrupt.
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

// A job can make faults come and go as it likes: further ones are shown, but not announced.
inline constexpr size_t kRankNewsMax = 1'000;  // of one attempt
// Each report leads to a look at all ranks of the job, so looks at many are less frequent: this
// many ranks in a millisecond.
inline constexpr size_t kRanksInMillisecond = 20;
// The longest age that an agent may report.
inline constexpr Duration kActivityAgeMax = 365 * 24h;

// Limits the ages and numbers of a report to those that can be. Errors: corrupt, for too many
// ranks.
Result<void> check(wire::Activity& activity);
// Adds to the ages what has passed since the report arrived.
void age(wire::Activity& activity, Duration since);

// Returns the line of a job's log about it: "rank 3 on algo-2 ..".
std::string line_of(const diagnosis::FaultNews& news);

class RankWatches {
 public:
  // False: the last look was not long ago, so a report of this attempt needs none.
  bool due(const domain::AttemptId& attempt, std::chrono::nanoseconds now) const;
  // Takes the ranks of all linked hosts of an attempt.
  std::vector<diagnosis::FaultNews> look(const domain::AttemptId& attempt,
                                         const std::vector<diagnosis::RankState>& ranks,
                                         std::chrono::nanoseconds now);
  std::vector<diagnosis::RankFault> faults(domain::JobNumber job) const;
  // Ends all faults of a job, as when its last agent is gone. What was announced still counts.
  std::vector<diagnosis::FaultNews> end(domain::JobNumber job, std::chrono::nanoseconds now);
  // For a job that has ended.
  void forget(domain::JobNumber job) { watched_.erase(job); }

 private:
  struct Watched {
    uint32_t attempt = 0;
    size_t news = 0;
    std::chrono::nanoseconds next_look{};
    diagnosis::RankWatch watch;
  };
  // Leaves out news beyond the limit.
  static void limit_news(Watched& watched, std::vector<diagnosis::FaultNews>& news);

  std::map<domain::JobNumber, Watched> watched_;  // that have not ended
};

// Adds the ranks of a host, with their ages as of now.
void add_ranks(const AgentSession& session, std::chrono::nanoseconds now,
               std::vector<diagnosis::RankState>& ranks);

}  // namespace trainyard::gateway
