// Publishes messages. Checks the constraints that the model lacks, with AWS's texts.
#include <algorithm>
#include <cctype>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sns/common.hpp"

namespace trainyard::api::sns {
namespace {

using notify::Message;
using notify::Notifications;

constexpr size_t kSubjectMax = 100;  // characters, as on AWS
constexpr size_t kBatchEntriesMax = 10;
constexpr size_t kAttributeNameMax = 256;
constexpr size_t kEntryIdMax = 80;

using Attributes = std::optional<std::map<std::string, aws::MessageAttributeValue>>;

Outcome<Done> check_attribute_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kAttributeNameMax && !name.starts_with('.') &&
                    !name.ends_with('.') && name.find("..") == name.npos &&
                    std::ranges::all_of(name, [](unsigned char c) {
                      return std::isalnum(c) || c == '_' || c == '-' || c == '.';
                    });
  if (good) return Done{};
  return sns_failure(400, "ParameterValueInvalid",
                     "Invalid message attribute name: " + shorten(name, 100));
}

Outcome<notify::MessageAttribute> attribute_of(const std::string& name,
                                               const aws::MessageAttributeValue& given) {
  const std::string& type = *given.data_type;
  const auto wrong = [&](const std::string& why) {
    return sns_failure(400, "ParameterValueInvalid", "The message attribute '" + name + "' " + why);
  };
  const std::string base = type.substr(0, type.find('.'));
  if (base != "String" && base != "Number" && base != "Binary")
    return wrong(
        "has an invalid message attribute type, the set of supported type prefixes is "
        "Binary, Number, and String.");
  if (base == "Binary") {
    if (!given.binary_value || given.binary_value->empty())
      return wrong("must contain non-empty message attribute value for message attribute type '" +
                   type + "'.");
    return notify::MessageAttribute{type, to_base64(*given.binary_value)};
  }
  if (!given.string_value || given.string_value->empty())
    return wrong("must contain non-empty message attribute value for message attribute type '" +
                 type + "'.");
  if (base == "Number" && !parse_double(*given.string_value))
    return wrong("with type 'Number' must use a valid number.");
  return notify::MessageAttribute{type, *given.string_value};
}

Outcome<Done> check_subject(const std::string& subject) {
  const bool good = subject.size() <= kSubjectMax && !subject.empty() &&
                    std::ranges::none_of(subject, [](unsigned char c) { return c < ' '; });
  if (good) return Done{};
  return sns_invalid("Subject");
}

// Reads a message with MessageStructure=json: an object of texts by protocol, with "default".
Outcome<Done> read_bodies(Message& message) {
  const auto json = parse_json(message.body);
  if (!json || !json->is_object())
    return sns_invalid("Message Structure - JSON message body failed to parse");
  const auto base = json->find("default");
  if (base == json->end() || !base->is_string())
    return sns_invalid("Message Structure - No default entry in JSON message body");
  for (const auto& [protocol, body] : json->items())
    if (body.is_string()) message.bodies[protocol] = body.get<std::string>();
  message.body = base->get<std::string>();
  message.bodies.erase("default");
  return Done{};
}

size_t bytes_of(const Message& message) {
  size_t bytes = message.body.size();
  for (const auto& [name, attribute] : message.attributes)
    bytes += name.size() + attribute.type.size() + attribute.value.size();
  return bytes;
}

Outcome<Message> message_of(const std::string& body, const std::optional<std::string>& subject,
                            const std::optional<std::string>& structure,
                            const Attributes& attributes) {
  Message message;
  message.body = body;
  if (body.empty()) return sns_invalid("Empty message");
  if (subject) TRY(check_subject(*subject));
  message.subject = subject.value_or("");
  if (attributes)
    for (const auto& [name, value] : *attributes) {
      TRY(check_attribute_name(name));
      message.attributes[name] = TRY(attribute_of(name, value));
    }
  if (bytes_of(message) > notify::kMessageBytesMax) return sns_invalid("Message too long");
  if (structure && *structure != "json") return sns_invalid("MessageStructure");
  if (structure) TRY(read_bodies(message));
  return message;
}

Outcome<aws::PublishResponse> publish(Notifications& all, const Context& context,
                                      const aws::PublishInput& in) {
  if (in.phone_number) return sns_invalid("PhoneNumber Reason: this server sends no text messages");
  if (in.message_group_id || in.message_deduplication_id)
    return sns_invalid(
        "MessageGroupId Reason: The request includes MessageGroupId or "
        "MessageDeduplicationId, which are for FIFO topics");
  if (in.topic_arn.has_value() == in.target_arn.has_value())
    return sns_invalid("TopicArn or TargetArn Reason: exactly one must be given");
  const std::string& topic = in.topic_arn ? *in.topic_arn : *in.target_arn;
  TRY(check_topic_arn(context, topic));
  std::vector<Message> messages;
  messages.push_back(
      TRY(message_of(*in.message, in.subject, in.message_structure, in.message_attributes)));
  const auto ids = TRY(with_failure(failure_for, all.publish(topic, std::move(messages))));
  return aws::PublishResponse{.message_id = ids.front()};
}

Outcome<Done> check_entries(const std::vector<aws::PublishBatchRequestEntry>& entries) {
  const auto failure = [](const char* code, const char* text) {
    return sns_failure(400, code, text);
  };
  if (entries.empty())
    return failure("EmptyBatchRequest", "The batch request doesn't contain any entries.");
  if (entries.size() > kBatchEntriesMax)
    return failure("TooManyEntriesInBatchRequest",
                   "The batch request contains more entries than permissible.");
  std::set<std::string> ids;
  size_t bytes = 0;
  for (const auto& each : entries) {
    const std::string& id = *each.id;
    const bool good =
        !id.empty() && id.size() <= kEntryIdMax && std::ranges::all_of(id, [](unsigned char c) {
          return std::isalnum(c) || c == '-' || c == '_';
        });
    if (!good)
      return failure("InvalidBatchEntryId",
                     "The Id of a batch entry in a batch request doesn't abide by the "
                     "specification.");
    if (!ids.insert(id).second)
      return failure("BatchEntryIdsNotDistinct",
                     "Two or more batch entries in the request have the same Id.");
    bytes += each.message->size();
  }
  if (bytes > notify::kMessageBytesMax)
    return failure("BatchRequestTooLong",
                   "The length of all the messages put together is more than the limit.");
  return Done{};
}

Outcome<aws::PublishBatchResponse> publish_batch(Notifications& all, const Context& context,
                                                 const aws::PublishBatchInput& in) {
  TRY(check_topic_arn(context, *in.topic_arn));
  TRY(check_entries(*in.publish_batch_request_entries));
  aws::PublishBatchResponse out;
  out.successful.emplace();
  out.failed.emplace();
  std::vector<Message> messages;
  std::vector<std::string> accepted;
  for (const auto& each : *in.publish_batch_request_entries) {
    auto message = each.message_group_id || each.message_deduplication_id
                       ? Outcome<Message>(sns_invalid(
                             "MessageGroupId Reason: The request includes MessageGroupId, which "
                             "is for FIFO topics"))
                       : message_of(*each.message, each.subject, each.message_structure,
                                    each.message_attributes);
    if (message) {
      accepted.push_back(*each.id);
      messages.push_back(std::move(*message));
      continue;
    }
    const Failure failure = message.failure(shapes::sns::kService);
    out.failed->push_back(
        {.id = *each.id, .code = failure.code, .message = failure.message, .sender_fault = true});
  }
  const auto ids = TRY(with_failure(failure_for, all.publish(*in.topic_arn, std::move(messages))));
  for (size_t i = 0; i < ids.size(); ++i)
    out.successful->push_back({.id = accepted[i], .message_id = ids[i]});
  return out;
}

}  // namespace

void add_publishing(OperationTable& table, const Services& services) {
  table.add<aws::Publish>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::PublishResponse> {
        return publish(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::PublishBatch>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::PublishBatchResponse> {
        return publish_batch(*TRY(notifications_of(services)), context, in);
      });
}

}  // namespace trainyard::api::sns
