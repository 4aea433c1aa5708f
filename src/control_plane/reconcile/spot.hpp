// Decides which jobs lose their spot machines now, by a trace or at random. Equal jobs and instants
// give the same interrupted hosts, and a selected host stays selected until it has ended, so that a
// server that was killed in between interrupts the same hosts.
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
  Instant at;                 // wall time as read from the file; then control's time
  std::string region;         // "": any
  std::string instance_type;  // "": any
  std::string machine;        // all hosts on it are interrupted; "": `hosts` hosts on any machines
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

// A line of the trace applies for this time, which is longer than a restart of the server. If fewer
// hosts run during it, fewer are interrupted.
inline constexpr Duration kTraceLineCounts = 10min;

// Requires: jobs are ordered by number. Ensures: at most one host per attempt; none of an attempt
// that is ending.
std::vector<SpotInterruption> spot_interruptions(
    const std::vector<std::shared_ptr<const domain::Job>>& jobs, const Spot& spot, Instant now);

}  // namespace trainyard::reconcile
