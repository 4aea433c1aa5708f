// Reads the events of a trace file in the Trace Event Format that a process of a job has written: a
// list of events, or an object whose member "traceEvents" is the list.
//
// A file may end anywhere, as that of a process that was killed does; the events before are read.
// Its content is hostile: it is read event by event, without recursion beyond parse_json's.
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
// Limits of the work for one file, which is parsed twice: of its objects, by its size, and of those
// that are skipped. Further ones are not read.
inline constexpr size_t kTraceEventBytesMin = 16;  // the mean of a file with more than a few events
inline constexpr size_t kTraceFewEvents = 100;     // in a file of any size
inline constexpr size_t kTraceSkippedMax = 1'000;
// The limit of instants and lengths in files: the year 10000. Sums of several fit into 64 bits.
inline constexpr double kTraceMicrosecondsMax = 253'402'300'800'000'000;

class TraceFileReader {
 public:
  explicit TraceFileReader(std::string_view bytes);

  // False: the file has no list of events.
  bool is_trace() const { return is_trace_; }
  // Returns the next event, an object; nothing at the end, and beyond the limits.
  std::optional<Json> next();
  size_t skipped() const { return skipped_; }
  // True: events beyond the limits were not read.
  bool cut_off() const { return cut_off_; }
  // Microseconds since 1970 to which its instants are relative, if it says so ahead of the list
  // ("baseTimeNanoseconds" of PyTorch's profiler).
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

// The instant of an event and how long it lasts, in microseconds. Nothing: it has none, or one that
// is out of range.
struct TraceEventTime {
  double begin = 0;
  double length = 0;
};
std::optional<TraceEventTime> time_of_event(const Json& event);

// How the instants of a file relate to the wall clock.
struct TraceFileClock {
  size_t events = 0;              // with an instant
  double first = 0, last = 0;     // first begin and last end, in microseconds
  std::optional<double> started;  // microseconds since 1970 at its instant 0; unset: unknown
};
// Its beginning is known from "start_time_since_epoch_in_micros" of a metadata event (SageMaker's
// profiler, Trainyard's timelines), from base(), or since its instants are since 1970 themselves.
TraceFileClock clock_of_file(std::string_view bytes);

}  // namespace trainyard::api::trainyard_api
