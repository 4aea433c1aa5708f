// TraceEvents collects the events of a trace as JSON text in the Trace Event Format, which Perfetto
// and chrome://tracing show.
//
//   TraceEvents events(8 << 20);
//   events.name_process(1, "control plane");
//   events.add_span({1, 1}, "attempt 1", "attempt", started, ended, {{"exit_code", 0}});
//   std::string text = std::move(events).text({{"job", "mnist-1"}});
//
// Texts are encoded as JSON, and invalid UTF-8 is replaced, so the result is valid JSON whatever a
// job has written.
//
// Threads: confined to one.
// Errors:  none. An event that does not fit is left out, and counted.
// Units:   instants of events are in microseconds since 1970.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/time.hpp"

namespace trainyard::api::trainyard_api {

// TraceTrack is a row of the trace: a thread of a process. Viewers show processes as groups of
// rows.
struct TraceTrack {
  int64_t process = 0;
  int64_t thread = 0;
};

class TraceEvents {
 public:
  // `bytes_max`: of all events together.
  explicit TraceEvents(size_t bytes_max) : bytes_max_(bytes_max) {}

  // Processes are shown in the order of their numbers.
  void name_process(int64_t process, std::string_view name);
  void name_thread(const TraceTrack& track, std::string_view name);
  // Adds a span. If `end` is before `begin`, the span ends at its beginning.
  void add_span(const TraceTrack& track, std::string_view name, std::string_view category,
                Instant begin, Instant end, Json arguments);
  void add_instant(const TraceTrack& track, std::string_view name, std::string_view category,
                   Instant at, Json arguments);
  // Adds a complete event.
  void add(const Json& event);

  size_t bytes() const { return text_.size(); }
  size_t left_out() const { return left_out_; }
  // Returns the whole trace. `other`: metadata for viewers.
  std::string text(const Json& other) &&;

 private:
  const size_t bytes_max_;
  std::string text_;
  size_t left_out_ = 0;
};

}  // namespace trainyard::api::trainyard_api
