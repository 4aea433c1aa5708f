// Defines the records of notifications: topics, subscriptions, messages, rules and targets.
//
// Threads: plain values. Errors: reading JSON: invalid, naming the member.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/enum_table.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::notify {

using Tags = std::map<std::string, std::string>;

struct Topic {
  std::string arn;  // arn:aws:sns:REGION:ACCOUNT:NAME
  // The attributes that were set, by AWS's names, such as DisplayName.
  std::map<std::string, std::string> attributes;
  Tags tags;
  Instant created;
};

// `command` is a command line that the server's config defines.
enum class Protocol { http, https, email, email_json, command };
inline constexpr EnumTable<Protocol> kProtocols{"protocol",
                                                {{Protocol::http, "http"},
                                                 {Protocol::https, "https"},
                                                 {Protocol::email, "email"},
                                                 {Protocol::email_json, "email-json"},
                                                 {Protocol::command, "command"}}};

struct Subscription {
  std::string arn;    // the ARN of its topic, ":" and a UUID
  std::string topic;  // ARN
  Protocol protocol = Protocol::http;
  std::string endpoint;  // a URL, an address, or the name of a command
  std::string creator;   // the name of the principal
  bool confirmed = false;
  std::string token;                         // confirms the subscription
  std::string unsubscribe_token;             // part of its UnsubscribeURL
  bool authenticate_on_unsubscribe = false;  // true: the UnsubscribeURL has no effect
  bool raw = false;                          // RawMessageDelivery
  std::string filter_policy;                 // "": all messages
  bool filters_body = false;                 // FilterPolicyScope is MessageBody
  std::string delivery_policy;               // as requested; "": none
  Instant created;
};

struct MessageAttribute {
  std::string type;   // "String", "Number", "String.Array", "Binary", with an optional suffix
  std::string value;  // base64 if the type is Binary
};

// Determines the form in which a message is sent.
enum class MessageKind {
  notification,  // of a topic
  confirmation,  // requests that an endpoint confirms its subscription
  event          // of a rule; `body` is what the target receives
};
inline constexpr EnumTable<MessageKind> kMessageKinds{"message kind",
                                                      {{MessageKind::notification, "notification"},
                                                       {MessageKind::confirmation, "confirmation"},
                                                       {MessageKind::event, "event"}}};

struct Message {
  MessageKind kind = MessageKind::notification;
  std::string id;     // a UUID
  std::string topic;  // the ARN of the topic, or for an event of its rule
  Instant at;
  std::string subject;
  std::string body;
  std::map<std::string, std::string> bodies;  // by protocol, with MessageStructure=json
  std::map<std::string, MessageAttribute> attributes;

  const std::string& body_for(Protocol protocol) const;
};

enum class TargetKind { topic, log_group, job_queue };
inline constexpr EnumTable<TargetKind> kTargetKinds{"target kind",
                                                    {{TargetKind::topic, "topic"},
                                                     {TargetKind::log_group, "log_group"},
                                                     {TargetKind::job_queue, "job_queue"}}};

struct Target {
  std::string id;  // unique in its rule
  std::string arn;
  TargetKind kind = TargetKind::topic;
  std::string role_arn;
  std::string input, input_path;             // at most one of input, input_path, input_template
  std::map<std::string, std::string> paths;  // InputPathsMap of an InputTransformer
  std::string input_template;
  Json batch = nullptr;    // BatchParameters, as requested
  Json creator = nullptr;  // the principal for which jobs are submitted (auth's record)
};

struct Rule {
  std::string arn;                // arn:aws:events:REGION:ACCOUNT:rule/NAME
  std::string pattern, schedule;  // at least one is set
  std::string description, role_arn;
  std::string creator;  // account
  bool enabled = true;
  Tags tags;
  std::vector<Target> targets;  // by id
  Instant created;
};

// Return parts of "arn:aws:SERVICE:REGION:ACCOUNT:REST"; "" for a missing part.
std::string region_of_arn(std::string_view arn);
std::string name_of_arn(std::string_view arn);  // the text after the last ':' or '/'

Json to_json(const Topic&);
Json to_json(const Subscription&);
Json to_json(const Message&);
Json to_json(const Rule&);
Result<Topic> topic_from_json(const Json&);
Result<Subscription> subscription_from_json(const Json&);
Result<Message> message_from_json(const Json&);
Result<Rule> rule_from_json(const Json&);

}  // namespace trainyard::notify
