// Decides which jobs lose their spot machines now, by a trace of the past or by chance. Pure: equal
// jobs and instants give the same interrupted hosts, and a host that was chosen stays chosen until
// it is gone, so that a server that was killed in between interrupts the same ones.
//
// Only spot jobs are interrupted, and jobs in a compute environment of spot machines. An
// interrupted host takes its gang with it.
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

// One line of a trace: spot capacity that was reclaimed.
struct TraceEvent {
  Instant at;                 // by the wall clock when it is read, then in control's time
  std::string region;         // "" = any
  std::string instance_type;  // "" = any
  std::string machine;        // every host on it; "" = `hosts` of them, on any machine
  uint32_t hosts = 1;
  size_t line = 0;  // of the file, for messages
};

// Reads CSV without a header, of lines
//
//   at,region,instance_type,hosts      at = seconds after `start`, or an ISO instant; hosts = a
//                                      number of hosts, or the name of a machine; a field may be
//                                      empty; # begins a comment
//
// Errors: invalid, naming the line.
Result<std::vector<TraceEvent>> parse_trace(std::string_view text, Instant start);

struct Spot {
  double interruptions_per_host_hour = 0;
  uint64_t seed = 0;
  std::vector<TraceEvent> trace;  // in any order
};

struct SpotInterruption {
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  std::string reason;
};

// A line of the trace counts for this long; capacity that was not found by then did not exist.
// Longer than a server's restart.
inline constexpr Duration kTraceLineCounts = 10min;

// Requires: jobs are ordered by number. Ensures: at most one host per attempt; none of an attempt
// that is ending.
std::vector<SpotInterruption> spot_interruptions(
    const std::vector<std::shared_ptr<const domain::Job>>& jobs, const Spot& spot, Instant now);

}  // namespace trainyard::reconcile
