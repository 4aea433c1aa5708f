#include "notify/envelope.hpp"

#include "base/text.hpp"

namespace trainyard::notify {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The subjects of AWS's mails for topics without a display name.
constexpr std::string_view kNotificationSubject = "AWS Notification Message";
constexpr std::string_view kConfirmationSubject = "AWS Notification - Subscription Confirmation";

std::string_view type_of(const Message& message) {
  return message.kind == MessageKind::confirmation ? "SubscriptionConfirmation" : "Notification";
}

std::string confirmation_text(const Subscription& subscription) {
  return "You have chosen to subscribe to the topic " + subscription.topic +
         ".\nTo confirm the subscription, visit the SubscribeURL included in this message.";
}

const std::string text_for(const Message& message, const Subscription& subscription) {
  return message.kind == MessageKind::confirmation ? confirmation_text(subscription)
                                                   : message.body_for(subscription.protocol);
}

std::string envelope_of(const Message& message, const Subscription& subscription,
                        const NotificationUrls& urls, const MessageSigner& signer) {
  const bool confirmation = message.kind == MessageKind::confirmation;
  OrderedJson json;
  json["Type"] = type_of(message);
  json["MessageId"] = message.id;
  if (confirmation) json["Token"] = subscription.token;
  json["TopicArn"] = subscription.topic;
  if (!message.subject.empty()) json["Subject"] = message.subject;
  json["Message"] = text_for(message, subscription);
  if (confirmation) json["SubscribeURL"] = urls.confirm(subscription);
  json["Timestamp"] = to_iso8601(message.at);
  json["SignatureVersion"] = "2";
  json["Signature"] = signer.sign(signed_text(message, subscription, urls));
  json["SigningCertURL"] = urls.certificate(signer);
  if (!confirmation) json["UnsubscribeURL"] = urls.unsubscribe(subscription);
  if (!message.attributes.empty()) {
    OrderedJson attributes = OrderedJson::object();
    for (const auto& [name, attribute] : message.attributes)
      attributes[name] = {{"Type", attribute.type}, {"Value", attribute.value}};
    json["MessageAttributes"] = std::move(attributes);
  }
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string mail_text(const Message& message, const Subscription& subscription,
                      const NotificationUrls& urls) {
  if (message.kind == MessageKind::confirmation)
    return "You have chosen to subscribe to the topic:\n" + subscription.topic +
           "\n\nTo confirm this subscription, visit the link below (if this was in error, no "
           "action is necessary):\n" +
           urls.confirm(subscription) + "\n";
  return message.body_for(subscription.protocol) +
         "\n\n--\nIf you wish to stop receiving notifications from this topic, visit the link "
         "below to unsubscribe:\n" +
         urls.unsubscribe(subscription) + "\n";
}

void add_http_headers(const Message& message, const Subscription& subscription, Outgoing& out) {
  out.headers = {{"Content-Type", "text/plain; charset=UTF-8"},
                 {"User-Agent", "Amazon Simple Notification Service Agent"},
                 {"x-amz-sns-message-type", std::string(type_of(message))},
                 {"x-amz-sns-message-id", message.id},
                 {"x-amz-sns-topic-arn", subscription.topic}};
  if (message.kind == MessageKind::confirmation) return;
  out.headers.emplace_back("x-amz-sns-subscription-arn", subscription.arn);
  if (subscription.raw) out.headers.emplace_back("x-amz-sns-rawdelivery", "true");
}

}  // namespace

std::string NotificationUrls::certificate(const MessageSigner& signer) const {
  return base + signer.file_name();
}

std::string NotificationUrls::confirm(const Subscription& subscription) const {
  return base + "?Action=ConfirmSubscription&TopicArn=" + percent_encode(subscription.topic) +
         "&Token=" + percent_encode(subscription.token);
}

std::string NotificationUrls::unsubscribe(const Subscription& subscription) const {
  return base + "?Action=Unsubscribe&SubscriptionArn=" + percent_encode(subscription.arn) +
         "&Token=" + percent_encode(subscription.unsubscribe_token);
}

std::string signed_text(const Message& message, const Subscription& subscription,
                        const NotificationUrls& urls) {
  std::string out;
  const auto add = [&](std::string_view name, std::string_view value) {
    out.append(name).append("\n").append(value).append("\n");
  };
  const bool confirmation = message.kind == MessageKind::confirmation;
  add("Message", text_for(message, subscription));
  add("MessageId", message.id);
  if (!confirmation && !message.subject.empty()) add("Subject", message.subject);
  if (confirmation) add("SubscribeURL", urls.confirm(subscription));
  add("Timestamp", to_iso8601(message.at));
  if (confirmation) add("Token", subscription.token);
  add("TopicArn", subscription.topic);
  add("Type", type_of(message));
  return out;
}

Outgoing outgoing_of(const Message& message, const Subscription& subscription,
                     const NotificationUrls& urls, const MessageSigner& signer) {
  Outgoing out{subscription.protocol, subscription.endpoint, {}, {}};
  const bool confirmation = message.kind == MessageKind::confirmation;
  if (subscription.protocol == Protocol::email) {
    out.body = mail_text(message, subscription, urls);
  } else if (subscription.raw && !confirmation) {
    out.body = message.body_for(subscription.protocol);
  } else {
    out.body = envelope_of(message, subscription, urls, signer);
  }
  if (subscription.protocol == Protocol::http || subscription.protocol == Protocol::https)
    add_http_headers(message, subscription, out);
  out.subject = !message.subject.empty()
                    ? message.subject
                    : std::string(confirmation ? kConfirmationSubject : kNotificationSubject);
  return out;
}

}  // namespace trainyard::notify
