#include "cli/log_follower.hpp"

#include <algorithm>

namespace trainyard::cli {
namespace {

using client::Service;

constexpr const char* kGroup = "/aws/sagemaker/TrainingJobs";
// of one query: some hundred kilobytes, in memory for each host
constexpr int kPageLinesMax = 5'000;

}  // namespace

Result<void> LogFollower::look() {
  const std::string prefix = choice_.job + "/" + (choice_.host.empty() ? "" : choice_.host + "-");
  auto answer = client_.call(Service::logs, "DescribeLogStreams",
                             {{"logGroupName", kGroup}, {"logStreamNamePrefix", prefix}});
  if (!answer && answer.error().kind == Kind::not_found) return {};  // no job has started yet
  const Json streams = TRY(std::move(answer));
  for (const Json& stream : streams.value("logStreams", Json::array())) {
    const std::string name = stream.value("logStreamName", "");
    const Mark mark{stream.value("storedBytes", int64_t(0)),
                    stream.value("lastIngestionTime", int64_t(0))};
    widest_ = std::max(widest_, width_of(host_of_stream(name)));
    if (const auto known = marks_.find(name); known != marks_.end() && known->second == mark)
      continue;
    marks_[name] = mark;
    merge_.wake(name);
  }
  return {};
}

Result<void> LogFollower::read(const std::string& stream) {
  Json question{{"logGroupName", kGroup},
                {"logStreamName", stream},
                {"startFromHead", true},
                {"limit", kPageLinesMax}};
  if (choice_.since) question["startTime"] = to_milliseconds(*choice_.since);
  if (const auto token = tokens_.find(stream); token != tokens_.end())
    question["nextToken"] = token->second;
  const Json answer = TRY(client_.call(Service::logs, "GetLogEvents", question));
  tokens_[stream] = answer.value("nextForwardToken", "");
  std::vector<LogLine> lines;
  const std::string host = host_of_stream(stream);
  for (const Json& event : answer.value("events", Json::array()))
    lines.push_back({event.value("timestamp", int64_t(0)), host, event.value("message", "")});
  const bool at_end = lines.empty();
  merge_.feed(stream, std::move(lines), at_end);
  return {};
}

Result<void> LogFollower::round(
    const std::function<Result<void>(const std::vector<LogLine>&)>& each) {
  TRY(look());
  for (;;) {
    const auto hungry = merge_.hungry();
    for (const auto& stream : hungry) TRY(read(stream));
    const auto lines = merge_.take();
    if (!lines.empty()) TRY(each(lines));
    if (hungry.empty() && lines.empty()) return {};
  }
}

}  // namespace trainyard::cli
