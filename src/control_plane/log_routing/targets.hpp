// LogTargets finds the place to which an ARN sends log events: a webhook of the configuration, or a
// log group of this server.
//
// A webhook has the ARN arn:aws:logs:REGION:ACCOUNT:destination:NAME in each region, or instead
// those of the streams for which it stands.
//
// Threads: immutable. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "observe/logs.hpp"

namespace trainyard::log_routing {

// A webhook that the configuration allows.
struct Webhook {
  std::string name;
  std::string url;
  std::string authorization;  // the value of that header; "": none
  std::string ca_bundle;      // PEM file; "": the system's
  // ARNs of Kinesis streams, Firehose streams and functions that requests name; none: the webhook
  // is a destination of its own.
  std::vector<std::string> stands_for = {};
  bool is_destination() const { return stands_for.empty(); }
};

struct GroupName {
  std::string region, group;
  auto operator<=>(const GroupName&) const = default;
};

// Either a webhook or a group.
struct LogTarget {
  std::string webhook;  // its name; "": the group
  GroupName group = {};
};

class LogTargets {
 public:
  LogTargets(std::string account, std::vector<Webhook> webhooks)
      : account_(std::move(account)), webhooks_(std::move(webhooks)) {}

  const std::string& account() const { return account_; }
  const std::vector<Webhook>& webhooks() const { return webhooks_; }
  // nullptr: the configuration has no webhook of that name.
  const Webhook* webhook(std::string_view name) const;
  // True if a webhook is the destination of that name.
  bool is_destination(std::string_view name) const {
    const Webhook* found = webhook(name);
    return found && found->is_destination();
  }
  // Unset: the ARN leads to nothing that this server can send to. The group may not exist.
  std::optional<LogTarget> find(std::string_view arn) const;
  // Unset: the ARN is not one of a log group of this account.
  std::optional<GroupName> group_of(std::string_view arn) const;
  // The name in the ARN of a destination of this account and region. Unset: it is another ARN.
  std::optional<std::string> destination_of(std::string_view region, std::string_view arn) const;

 private:
  const std::string account_;
  const std::vector<Webhook> webhooks_;
};

// Appends events to a stream, and creates the stream if it is missing. These events are marked:
// forwards_own_events() is true while the append calls LogSettings::appended, so that groups that
// forward to each other do not do so forever. Errors: those of observe; not_found: the group.
Result<void> forward_events(observe::Logs& logs, const observe::StreamKey& key,
                            const std::vector<observe::LogEvent>& events);
bool forwards_own_events();

}  // namespace trainyard::log_routing
