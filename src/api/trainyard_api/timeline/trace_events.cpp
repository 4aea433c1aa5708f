#include "trainyard_api/timeline/trace_events.hpp"

#include <algorithm>
#include <utility>

#include "base/arithmetic.hpp"

namespace trainyard::api::trainyard_api {
namespace {

int64_t microseconds(Instant at) { return saturating_mul<int64_t>(to_milliseconds(at), 1000); }

Json metadata(std::string_view kind, const TraceTrack& track, Json arguments) {
  return {{"ph", "M"},
          {"name", kind},
          {"pid", track.process},
          {"tid", track.thread},
          {"args", std::move(arguments)}};
}

Json event_at(std::string_view kind, const TraceTrack& track, std::string_view name,
              std::string_view category, Instant at, Json arguments) {
  Json event{{"ph", kind},           {"name", name},        {"cat", category},
             {"pid", track.process}, {"tid", track.thread}, {"ts", microseconds(at)}};
  if (!arguments.empty()) event["args"] = std::move(arguments);
  return event;
}

}  // namespace

void TraceEvents::name_process(int64_t process, std::string_view name) {
  add(metadata("process_name", {process, 0}, {{"name", name}}));
  add(metadata("process_sort_index", {process, 0}, {{"sort_index", process}}));
}

void TraceEvents::name_thread(const TraceTrack& track, std::string_view name) {
  add(metadata("thread_name", track, {{"name", name}}));
}

void TraceEvents::add_span(const TraceTrack& track, std::string_view name,
                           std::string_view category, Instant begin, Instant end, Json arguments) {
  Json event = event_at("X", track, name, category, begin, std::move(arguments));
  event["dur"] = microseconds(std::max(begin, end)) - microseconds(begin);
  add(event);
}

void TraceEvents::add_instant(const TraceTrack& track, std::string_view name,
                              std::string_view category, Instant at, Json arguments) {
  Json event = event_at("i", track, name, category, at, std::move(arguments));
  event["s"] = "t";  // an instant of its thread, not of the process
  add(event);
}

void TraceEvents::add(const Json& event) {
  std::string line = dump(event);
  if (text_.size() + line.size() + 2 > bytes_max_) {
    ++left_out_;
    return;
  }
  if (!text_.empty()) text_ += ",\n";
  text_ += line;
}

std::string TraceEvents::text(const Json& other) && {
  return "{\"displayTimeUnit\":\"ms\",\"otherData\":" + dump(other) + ",\"traceEvents\":[\n" +
         text_ + "\n]}\n";
}

}  // namespace trainyard::api::trainyard_api
