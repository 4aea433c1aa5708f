#include "cli/log_reader.hpp"

#include <algorithm>

namespace trainyard::cli {
namespace {

// of one query: some hundred kilobytes, in memory for each stream
constexpr int kPageLinesMax = 5'000;

std::string key_of(const LogSource& source) { return source.group + ":" + source.stream; }

}  // namespace

void LogReader::wake(const LogSource& source) {
  widest_ = std::max(widest_, width_of(source.label));
  const std::string key = key_of(source);
  places_.try_emplace(key, Position{source, ""});
  merge_.wake(key);
}

void LogReader::forget(const LogSource& source) {
  merge_.forget(key_of(source));
  places_.erase(key_of(source));
}

Result<void> LogReader::read(const std::string& key, Position& place) {
  Json question{{"logGroupName", place.source.group},
                {"logStreamName", place.source.stream},
                {"startFromHead", true},
                {"limit", kPageLinesMax}};
  if (since_) question["startTime"] = to_milliseconds(*since_);
  if (!place.token.empty()) question["nextToken"] = place.token;
  auto answer = client_.call(client::Service::logs, "GetLogEvents", question);
  if (!answer && answer.error().kind == Kind::not_found) {
    merge_.feed(key, {}, true);  // nothing was written yet
    return {};
  }
  const Json page = TRY(std::move(answer));
  place.token = page.value("nextForwardToken", "");
  std::vector<LogLine> lines;
  for (const Json& event : page.value("events", Json::array()))
    lines.push_back(
        {event.value("timestamp", int64_t(0)), place.source.label, event.value("message", "")});
  const bool at_end = lines.empty();
  merge_.feed(key, std::move(lines), at_end);
  return {};
}

Result<void> LogReader::drain(const LinesTaker& each) {
  for (;;) {
    const auto hungry = merge_.hungry();
    for (const auto& key : hungry) TRY(read(key, places_.at(key)));
    const auto lines = merge_.take();
    if (!lines.empty()) TRY(each(lines));
    if (hungry.empty() && lines.empty()) return {};
  }
}

}  // namespace trainyard::cli
