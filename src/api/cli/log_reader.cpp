#include "cli/log_reader.hpp"

#include <algorithm>

namespace trainyard::cli {
namespace {

// The lines of one response: some hundred kilobytes, which are held for each stream.
constexpr int kPageLinesMax = 5'000;

std::string key_of(const LogSource& source) { return source.group + ":" + source.stream; }

}  // namespace

void LogReader::mark_unread(const LogSource& source) {
  widest_ = std::max(widest_, width_of(source.label));
  const std::string key = key_of(source);
  positions_.try_emplace(key, Position{source, ""});
  merge_.mark_unread(key);
}

void LogReader::forget(const LogSource& source) {
  merge_.forget(key_of(source));
  positions_.erase(key_of(source));
}

Result<void> LogReader::read(const std::string& key, Position& position) {
  Json request{{"logGroupName", position.source.group},
               {"logStreamName", position.source.stream},
               {"startFromHead", true},
               {"limit", kPageLinesMax}};
  if (since_) request["startTime"] = to_milliseconds(*since_);
  if (!position.token.empty()) request["nextToken"] = position.token;
  auto answer = client_.call(client::Service::logs, "GetLogEvents", request);
  if (!answer && answer.error().kind == Kind::not_found) {
    merge_.feed(key, {}, true);  // nothing was written yet
    return {};
  }
  const Json page = TRY(std::move(answer));
  position.token = page.value("nextForwardToken", "");
  std::vector<LogLine> lines;
  for (const Json& event : page.value("events", Json::array()))
    lines.push_back(
        {event.value("timestamp", int64_t(0)), position.source.label, event.value("message", "")});
  const bool at_end = lines.empty();
  merge_.feed(key, std::move(lines), at_end);
  return {};
}

Result<void> LogReader::drain(const LineSink& each) {
  for (;;) {
    const auto unread_streams = merge_.unread_streams();
    for (const auto& key : unread_streams) TRY(read(key, positions_.at(key)));
    const auto lines = merge_.take_ready();
    if (!lines.empty()) TRY(each(lines));
    if (unread_streams.empty() && lines.empty()) return {};
  }
}

}  // namespace trainyard::cli
