// Which jobs lose their spot machines now: what a trace of the past says, or chance. Pure: the same jobs and the same
// instant give the same victims, and who was one stays one until he is gone, so that a server that was killed in
// between takes the same ones.
//
// Only spot jobs are taken away, and what runs in a compute environment of spot machines. A host that is taken away takes
// its gang with it.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::reconcile {

// One line of a trace: capacity that was taken back.
struct TraceEvent {
  Instant at;                 // of the wall clock when it is read, then in control's time
  std::string region;         // "" = any
  std::string instance_type;  // "" = any
  std::string machine;        // every host on it; "" = `hosts` of them, wherever they are
  uint32_t hosts = 1;
  size_t line = 0;  // of the file, for people
};

// CSV without a header, of lines
//
//   at,region,instance_type,victims      at = seconds after `start`, or an ISO instant; victims = a number of hosts, or
//                                        the name of a machine; a field may be empty; # begins a comment
//
// Errors: invalid, naming the line.
Result<std::vector<TraceEvent>> parse_trace(std::string_view text, Instant start);

struct Spot {
  double interruptions_per_host_hour = 0;
  uint64_t seed = 0;
  std::vector<TraceEvent> trace;  // in any order
};

struct Victim {
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  std::string reason;
};

// A line of the trace counts for this long: what it did not take by then was not there. Longer than a server's restart.
inline constexpr Duration kTraceLineCounts = 10min;

// Requires: jobs are ordered by number. Ensures: at most one victim an attempt; none of those that end already.
std::vector<Victim> victims(const std::vector<std::shared_ptr<const domain::Job>>& jobs, const Spot& spot,
                            Instant now);

}  // namespace trainyard::reconcile
