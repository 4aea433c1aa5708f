#include "notify/event_targets.hpp"

#include <cctype>
#include <utility>

#include "base/text.hpp"

namespace trainyard::notify {
namespace {

constexpr std::string_view kLogGroup = ":log-group:";

Sent sent_of(const Result<void>& result) {
  if (result) return {};
  const Kind kind = result.error().kind;
  const bool final = kind == Kind::denied || kind == Kind::invalid || kind == Kind::not_found;
  return {final ? SendResult::refused : SendResult::retry, result.error().message};
}

Result<void> append_to_log(observe::Logs& logs, Clock& clock, const KnownRule& rule,
                           const Target& target, const Message& message) {
  const std::string group = log_group_of_arn(target.arn);
  const auto parts = split(target.arn, ':');
  if (group.empty() || parts[1] != "aws" || parts[2] != "logs")
    return invalid("not the ARN of a log group: " + target.arn);
  const observe::StreamKey key{region_of_arn(target.arn), group, name_of_arn(rule.arn)};
  TRY(logs.ensure_stream(key));
  return logs.append(key, {{clock.now(), Instant{}, message.body}});
}

// Converts "ContainerOverrides" to "containerOverrides": the names in the input of a target begin
// with capitals, those in the request with small letters.
Json with_small_initials(const Json& json) {
  if (json.is_array()) {
    Json out = Json::array();
    for (const Json& each : json) out.push_back(with_small_initials(each));
    return out;
  }
  if (!json.is_object()) return json;
  Json out = Json::object();
  for (const auto& [name, value] : json.items()) {
    std::string small = name;
    if (!small.empty()) small[0] = char(std::tolower(static_cast<unsigned char>(small[0])));
    out[small] = with_small_initials(value);
  }
  return out;
}

}  // namespace

std::string log_group_of_arn(const std::string& arn) {
  const auto at = arn.find(kLogGroup);
  if (at == arn.npos) return "";
  std::string name = arn.substr(at + kLogGroup.size());
  if (name.ends_with(":*")) name.resize(name.size() - 2);
  return name;
}

Json submit_request_of(const Target& target, const std::string& input) {
  Json request = target.batch;
  request["jobQueue"] = target.arn;
  const auto given = parse_json(input);
  if (!given || !given->is_object()) return request;
  for (const char* name : {"ContainerOverrides", "ArrayProperties"})
    if (const auto found = given->find(name); found != given->end() && found->is_object())
      request[std::string(name) == "ArrayProperties" ? "arrayProperties" : "containerOverrides"] =
          with_small_initials(*found);
  // Users choose the names of parameters, which are not converted.
  if (const auto found = given->find("Parameters"); found != given->end() && found->is_object())
    request["parameters"] = *found;
  return request;
}

Notifications::SendEvent send_to_targets(observe::Logs& logs, Clock& clock, SubmitJob submit) {
  return [&logs, &clock, submit = std::move(submit)](const KnownRule& rule, const Target& target,
                                                     const Message& message) -> Sent {
    switch (target.kind) {
      case TargetKind::log_group:
        return sent_of(append_to_log(logs, clock, rule, target, message));
      case TargetKind::job_queue:
        return sent_of(submit(region_of_arn(target.arn), target.creator,
                              submit_request_of(target, message.body)));
      case TargetKind::topic:
        break;
    }
    return {SendResult::refused, "a topic receives events when they are put"};
  };
}

}  // namespace trainyard::notify
