// TraceFileReader reads the events of a trace file in the Trace Event Format that a process of a
// job has written: a list of events, or an object whose member "traceEvents" is the list.
//
// A file may be truncated, as when its process was killed; the complete events are read. The
// content is untrusted: it is read event by event, without recursion except parse_json's.
//
// Threads: confined to one. Lifetime: the bytes outlive the reader.
// Errors: none; an event that is not a JSON object of at most kTraceEventBytesMax is skipped.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/json.hpp"

namespace trainyard::api::trainyard_api {

// The limit of one event's text; Kineto's longest ones, with stacks, have a few KiB.
inline constexpr size_t kTraceEventBytesMax = 64 << 10;
// Limits of the work for one file, which is parsed twice: of its objects, by its size, and of
// skipped objects. Further objects are not read.
inline constexpr size_t kTraceEventBytesMin = 16;  // the least mean size, of more than a few events
inline constexpr size_t kTraceFewEvents = 100;     // in a file of any size
inline constexpr size_t kTraceSkippedMax = 1'000;
// The limit of instants and lengths in files: the year 10000, so that sums of several fit into 64
// bits.
inline constexpr double kTraceMicrosecondsMax = 253'402'300'800'000'000;

class TraceFileReader {
 public:
  explicit TraceFileReader(std::string_view bytes);

  // Returns whether the file has a list of events.
  bool is_trace() const { return is_trace_; }
  // Returns the next event, a JSON object; nothing at the end of the file or at a limit.
  std::optional<Json> next();
  size_t skipped() const { return skipped_; }
  // Returns whether events beyond the limits were not read.
  bool cut_off() const { return cut_off_; }
  // Returns the microseconds since 1970 to which the file's instants are relative, if the file has
  // them before the list ("baseTimeNanoseconds" of PyTorch's profiler).
  std::optional<double> base() const { return base_; }

 private:
  size_t end_of_object() const;

  const std::string_view bytes_;
  size_t at_ = 0;
  bool is_trace_ = false;
  size_t read_ = 0;  // objects
  size_t skipped_ = 0;
  bool cut_off_ = false;
  std::optional<double> base_;
};

// TraceEventTime is the instant of an event and its duration, in microseconds.
struct TraceEventTime {
  double begin = 0;
  double length = 0;
};
// Returns nothing if the event has no time, or one that is out of range.
std::optional<TraceEventTime> time_of_event(const Json& event);

// TraceFileClock relates the instants of a file to the wall clock.
struct TraceFileClock {
  size_t events = 0;              // with an instant
  double first = 0, last = 0;     // first begin and last end, in microseconds
  std::optional<double> started;  // microseconds since 1970 at its instant 0; unset = unknown
};
// Determines the clock of a file. `started` comes from "start_time_since_epoch_in_micros" of a
// metadata event (SageMaker's profiler, Trainyard's timelines), from base(), or is 0 for instants
// since 1970.
TraceFileClock clock_of_file(std::string_view bytes);

}  // namespace trainyard::api::trainyard_api
