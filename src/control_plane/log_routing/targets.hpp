// LogTargets finds the target of log events to which an ARN refers: a webhook of the configuration,
// or a log group of this server.
//
// A webhook has the ARN arn:aws:logs:REGION:ACCOUNT:destination:NAME in each region, or, if
// `stands_for` is not empty, the ARNs listed there.
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
  std::string authorization;  // the value of the Authorization header; "": no header
  std::string ca_bundle;      // PEM file; "": the system's
  // The ARNs of Kinesis streams, Firehose streams and functions that requests name for this
  // webhook; empty: requests name the webhook as a destination.
  std::vector<std::string> stands_for = {};
  bool is_destination() const { return stands_for.empty(); }
};

struct GroupName {
  std::string region, group;
  auto operator<=>(const GroupName&) const = default;
};

// A LogTarget is either a webhook or a group.
struct LogTarget {
  std::string webhook;  // the name of the webhook; "": the target is the group
  GroupName group = {};
};

class LogTargets {
 public:
  LogTargets(std::string account, std::vector<Webhook> webhooks)
      : account_(std::move(account)), webhooks_(std::move(webhooks)) {}

  const std::string& account() const { return account_; }
  const std::vector<Webhook>& webhooks() const { return webhooks_; }
  // Returns nullptr if the configuration has no webhook with this name.
  const Webhook* webhook(std::string_view name) const;
  // Returns whether a webhook is the destination with this name.
  bool is_destination(std::string_view name) const {
    const Webhook* found = webhook(name);
    return found && found->is_destination();
  }
  // Returns nullopt if the ARN is not a target of this server. The group may not exist.
  std::optional<LogTarget> find(std::string_view arn) const;
  // Returns nullopt if the ARN does not name a log group of this account.
  std::optional<GroupName> group_of(std::string_view arn) const;
  // Returns the name in the ARN of a destination of this account and region, or nullopt for another
  // ARN.
  std::optional<std::string> destination_of(std::string_view region, std::string_view arn) const;

 private:
  const std::string account_;
  const std::vector<Webhook> webhooks_;
};

// Appends events to a stream, and creates the stream if it is missing. is_forwarding() returns true
// in LogSettings::appended during this append, so that groups that forward to each other do not
// forward the same events forever. Errors: those of observe; not_found: the group.
Result<void> forward_events(observe::Logs& logs, const observe::StreamKey& key,
                            const std::vector<observe::LogEvent>& events);
bool is_forwarding();

}  // namespace trainyard::log_routing
