// Reads arbitrary bytes as a trace file, and adds its events to a trace.
// decoder: src/api/trainyard_api/timeline/trace_file.cpp
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "trainyard_api/timeline/file_events.hpp"
#include "trainyard_api/timeline/trace_file.hpp"

using namespace trainyard;
using namespace trainyard::api::trainyard_api;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  TraceFileReader reader(bytes);
  size_t events = 0;
  while (const auto event = reader.next()) {
    CHECK(event->is_object(), "events are objects");
    ++events;
  }
  CHECK(events + reader.skipped() <= size / 2, "each event has two braces");
  CHECK(clock_of_file(bytes).events <= events, "the clock counts no other events");

  constexpr size_t kBytesMax = 64 << 10;
  const TraceFrame frame{from_milliseconds(0), from_milliseconds(1'000'000), from_milliseconds(1)};
  TraceEvents drawn(kBytesMax);
  std::vector<std::string> notes;
  add_file_events({{bytes.substr(0, 8), bytes}}, frame, kBytesMax, drawn, notes);
  CHECK(drawn.bytes() <= kBytesMax, "the trace is within its limit");
  const auto trace = parse_json(std::move(drawn).text({{"notes", notes}}));
  CHECK(trace && trace->at("traceEvents").size() <= 2 * events + 2 * size_t(kFileProcessesMax),
        "a trace is valid JSON");
  return 0;
}
