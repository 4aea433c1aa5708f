#include "notify/command_sender.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "os/process.hpp"

namespace trainyard::notify {
namespace {

constexpr size_t kLoggedErrorBytesMax = 300;

}  // namespace

Sent CommandSender::send(const Outgoing& outgoing) const {
  const auto found = commands_.find(outgoing.endpoint);
  if (found == commands_.end())
    return {SendResult::refused, "the configuration no longer has this command"};
  os::Command command;
  command.arguments = found->second.arguments;
  command.environment = {{"TRAINYARD_SUBJECT", outgoing.subject}};
  command.inherited = std::vector<std::string>{"PATH", "HOME", "LANG"};
  command.input = outgoing.body;
  command.at_most = found->second.at_most;
  const auto outcome = os::run(command);
  if (!outcome) return {SendResult::retry, outcome.error().message};
  if (outcome->code == 0) return {};
  return {SendResult::retry, "the command ended with status " + std::to_string(outcome->code) +
                                 ": " + shorten(trim(outcome->errors), kLoggedErrorBytesMax)};
}

Result<void> CommandSender::check(const Subscription& subscription) const {
  const auto found = commands_.find(subscription.endpoint);
  const std::string topic = name_of_arn(subscription.topic);
  const auto allows = [&](const std::string& name) { return name == "*" || name == topic; };
  if (found != commands_.end() && std::ranges::any_of(found->second.topics, allows)) return {};
  return denied("the server's configuration has no command '" + shorten(subscription.endpoint, 80) +
                "' for the topic " + topic);
}

}  // namespace trainyard::notify
