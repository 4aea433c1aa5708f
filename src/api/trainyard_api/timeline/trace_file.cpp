#include "trainyard_api/timeline/trace_file.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace trainyard::api::trainyard_api {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kListMember = "\"traceEvents\"", kBaseMember = "\"baseTimeNanoseconds\"";
constexpr const char* kStartArgument = "start_time_since_epoch_in_micros";
// Instants above this one, in the year 2001, are since 1970: no process runs for 31 years.
constexpr double kSinceEpochMin = 1e15;

// Returns the position after the name of a member and its colon; npos = not found.
size_t value_of_member(std::string_view text, std::string_view quoted_name) {
  size_t at = text.find(quoted_name);
  if (at == std::string_view::npos) return at;
  at = text.find_first_not_of(kBlanks, at + quoted_name.size());
  if (at == std::string_view::npos || text[at] != ':') return std::string_view::npos;
  return text.find_first_not_of(kBlanks, at + 1);
}

std::optional<double> number_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  if (!(std::abs(value) <= kTraceMicrosecondsMax)) return std::nullopt;
  return value;
}

std::optional<double> base_of(std::string_view head) {
  const size_t at = value_of_member(head, kBaseMember);
  if (at == std::string_view::npos) return std::nullopt;
  const auto nanoseconds =
      parse_double(head.substr(at, head.find_first_not_of("0123456789", at) - at));
  if (!nanoseconds || !(*nanoseconds / 1000 <= kTraceMicrosecondsMax)) return std::nullopt;
  return *nanoseconds / 1000;
}

std::optional<double> started_of(const Json& event) {
  const auto arguments = event.find("args");
  if (event.value("ph", Json()) != "M" || arguments == event.end() || !arguments->is_object())
    return std::nullopt;
  return number_at(*arguments, kStartArgument);
}

}  // namespace

TraceFileReader::TraceFileReader(std::string_view bytes) : bytes_(bytes) {
  size_t at = bytes.find_first_not_of(kBlanks);
  if (at == std::string_view::npos) return;
  if (bytes[at] == '{') {
    at = value_of_member(bytes, kListMember);
    if (at == std::string_view::npos) return;
    base_ = base_of(bytes.substr(0, at));
  }
  is_trace_ = bytes[at] == '[';
  at_ = is_trace_ ? at + 1 : bytes.size();
}

// Returns the position after the object at at_; npos if the file ends before. Requires: an object
// begins at at_.
size_t TraceFileReader::end_of_object() const {
  size_t depth = 0;
  bool in_text = false;
  for (size_t i = at_; i < bytes_.size(); ++i) {
    const char each = bytes_[i];
    if (in_text) {
      if (each == '\\')
        ++i;
      else if (each == '"')
        in_text = false;
    } else if (each == '"') {
      in_text = true;
    } else if (each == '{') {
      ++depth;
    } else if (each == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::optional<Json> TraceFileReader::next() {
  if (!is_trace_) return std::nullopt;
  for (;;) {
    at_ = std::min(bytes_.find_first_not_of(" \t\r\n,", at_), bytes_.size());
    if (at_ == bytes_.size() || bytes_[at_] != '{') return std::nullopt;
    if (read_ >= bytes_.size() / kTraceEventBytesMin + kTraceFewEvents ||
        skipped_ >= kTraceSkippedMax) {
      cut_off_ = true;
      at_ = bytes_.size();
      return std::nullopt;
    }
    ++read_;
    const size_t end = end_of_object();
    if (end == std::string_view::npos) {
      at_ = bytes_.size();
      return std::nullopt;
    }
    const std::string_view text = bytes_.substr(at_, end - at_);
    at_ = end;
    if (text.size() <= kTraceEventBytesMax)
      if (auto event = parse_json(text); event && event->is_object()) return *std::move(event);
    ++skipped_;
  }
}

std::optional<TraceEventTime> time_of_event(const Json& event) {
  const auto begin = number_at(event, "ts");
  if (!begin) return std::nullopt;
  if (!event.contains("dur")) return TraceEventTime{*begin, 0};
  const auto length = number_at(event, "dur");
  if (!length || *length < 0) return std::nullopt;
  return TraceEventTime{*begin, *length};
}

TraceFileClock clock_of_file(std::string_view bytes) {
  TraceFileReader reader(bytes);
  TraceFileClock clock;
  clock.started = reader.base();
  while (const auto event = reader.next()) {
    if (const auto started = started_of(*event)) clock.started = started;
    const auto time = event->value("ph", Json()) == "M" ? std::nullopt : time_of_event(*event);
    if (!time) continue;
    const double end = time->begin + time->length;
    clock.first = clock.events == 0 ? time->begin : std::min(clock.first, time->begin);
    clock.last = clock.events == 0 ? end : std::max(clock.last, end);
    ++clock.events;
  }
  if (clock.events > 0 && clock.first >= kSinceEpochMin) clock.started = 0;
  return clock;
}

}  // namespace trainyard::api::trainyard_api
