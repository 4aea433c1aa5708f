#include "log_routing/targets.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "contract/aws_texts.hpp"

namespace trainyard::log_routing {
namespace {

thread_local bool forwarding = false;

// The parts of arn:aws:logs:REGION:ACCOUNT:KIND:NAME.
struct LogsArn {
  std::string_view region, name;
};
std::optional<LogsArn> parse_arn(std::string_view arn, std::string_view account,
                                 std::string_view kind) {
  constexpr std::string_view kStart = contract::kLogsArnStart;
  if (!arn.starts_with(kStart)) return {};
  arn.remove_prefix(kStart.size());
  const size_t colon = arn.find(':');
  if (colon == 0 || colon == std::string_view::npos) return {};
  const std::string_view region = arn.substr(0, colon);
  arn.remove_prefix(colon + 1);
  const std::string rest = std::string(account) + ":" + std::string(kind) + ":";
  if (!arn.starts_with(rest) || arn.size() == rest.size()) return {};
  return LogsArn{region, arn.substr(rest.size())};
}

}  // namespace

const Webhook* LogTargets::webhook(std::string_view name) const {
  const auto found = std::ranges::find(webhooks_, name, &Webhook::name);
  return found == webhooks_.end() ? nullptr : &*found;
}

std::optional<GroupName> LogTargets::group_of(std::string_view arn) const {
  auto parts = parse_arn(arn, account_, "log-group");
  if (!parts) return {};
  if (parts->name.ends_with(":*")) parts->name.remove_suffix(2);
  if (parts->name.empty() || parts->name.find(':') != std::string_view::npos) return {};
  return GroupName{std::string(parts->region), std::string(parts->name)};
}

std::optional<std::string> LogTargets::destination_of(std::string_view region,
                                                      std::string_view arn) const {
  const auto parts = parse_arn(arn, account_, "destination");
  if (!parts || parts->region != region) return {};
  return std::string(parts->name);
}

std::optional<LogTarget> LogTargets::find(std::string_view arn) const {
  if (auto group = group_of(arn)) return LogTarget{.webhook = "", .group = *std::move(group)};
  if (const auto parts = parse_arn(arn, account_, "destination"))
    return is_destination(parts->name)
               ? std::optional(LogTarget{.webhook = std::string(parts->name)})
               : std::nullopt;
  for (const Webhook& each : webhooks_)
    if (std::ranges::find(each.stands_for, arn) != each.stands_for.end())
      return LogTarget{.webhook = each.name};
  return {};
}

bool is_forwarding() { return forwarding; }

Result<void> forward_events(observe::Logs& logs, const observe::StreamKey& key,
                            const std::vector<observe::LogEvent>& events) {
  forwarding = true;
  auto done = logs.append(key, events);
  if (!done && done.error().is(observe::LogResource::stream)) {
    // Another thread may have created the stream meanwhile.
    done = logs.create_stream(key);
    if (done || done.error().kind == Kind::conflict) done = logs.append(key, events);
  }
  forwarding = false;
  return done;
}

}  // namespace trainyard::log_routing
