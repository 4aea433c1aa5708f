// A Timeout decides how long a rank waits for others, and which rank it blames when nothing
// arrives.
//
// The rank for which this one waits may itself wait for a third. Only the rank at the end of the
// chain, which does not wait, is stuck. So a rank that waits without progress repeatedly reports
// this to the others, with the rank that it would blame, and reports again at once if that rank
// changes. A rank that sends no reports does not wait in this group: it is stuck, stopped, or late.
// A rank that began to wait before the limit has reported it when this rank blames a peer.
//
//   0          a step        2 steps ..                          the limit   + 2 steps
//   it waits   it reports    again, and when the name changes                it blames
//
// Threads: confined to one at a time. Errors: none.
// Units: a step is a twentieth of the limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"

namespace trainyard::collectives {

class Timeout {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Timeout(int rank, int ranks, Duration limit, Time now);

  void set_limit(Duration limit);
  Duration limit() const { return limit_; }
  Duration step() const;

  // Call when a message made progress, or a wait begins.
  void moved(Time now) { moved_at_ = now; }
  Time moved_at() const { return moved_at_; }
  // Records the report of `peer`, which waits and would blame `guilty`. Requires: both are ranks.
  void add_report(int peer, int guilty, Time now);

  // Returns the rank that is at fault, as far as this rank knows, if the ranks in `waited_for` make
  // no progress. Returns this rank if `waited_for` is empty.
  int guilty(std::span<const int> waited_for, Time now) const;
  // Returns the rank to name in a report, if a report is due now.
  std::optional<int> report(std::span<const int> waited_for, Time now);
  bool is_over(Time now) const;

 private:
  struct Report {
    int guilty = 0;
    Time at;
  };
  // few enough to send few reports, but a wait that begins late is reported, too
  static constexpr int kStepsInLimit = 20;
  // steps after the limit: time for the reports of ranks that began to wait within it
  static constexpr int kStepsUntilBlame = 2;
  // a report is valid until the next one, which may be late where cores are busy
  static constexpr int kStepsReportIsValid = 10;

  const int rank_;
  Duration limit_;
  Time moved_at_;
  std::vector<std::optional<Report>> reports_;  // by rank
  std::optional<Report> last_report_;
};

}  // namespace trainyard::collectives
