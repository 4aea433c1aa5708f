// Implements the operations on subscriptions.
#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sns/common.hpp"

namespace trainyard::api::sns {
namespace {

using notify::Notifications;
using notify::Protocol;
using notify::Subscription;

constexpr size_t kMailAddressMax = 254;
constexpr size_t kDeliveryPolicyBytesMax = 30 << 10;
constexpr std::string_view kPending = "PendingConfirmation";
constexpr std::string_view kPendingShown = "pending confirmation";

bool is_mail_address(const std::string& text) {
  const auto at = text.find('@');
  return at != text.npos && at > 0 && at + 1 < text.size() && text.find('@', at + 1) == text.npos &&
         text.size() <= kMailAddressMax && std::ranges::all_of(text, [](unsigned char c) {
           return c > ' ' && c < 0x7f && c != '<' && c != '>' && c != ',' && c != ';' && c != '"';
         });
}

Outcome<Protocol> protocol_of(const Notifications& all, const std::string& text) {
  const auto protocol = notify::kProtocols.find(text);
  if (!protocol)
    return sns_invalid("Protocol: " + shorten(text, 100) +
                       " is not supported by this server; use http, https, email, email-json or "
                       "command");
  if (!all.offers(*protocol))
    return sns_invalid("Protocol: " + text +
                       " requires settings in [notifications] of the server's configuration");
  return *protocol;
}

Outcome<Done> check_endpoint(Protocol protocol, const std::string& endpoint) {
  if (protocol == Protocol::http || protocol == Protocol::https) {
    const auto checked = notify::check_http_endpoint(protocol, endpoint);
    if (!checked) return sns_failure(400, "InvalidParameter", checked.error().message);
  }
  if ((protocol == Protocol::email || protocol == Protocol::email_json) &&
      !is_mail_address(endpoint))
    return sns_invalid("Email address");
  return Done{};
}

// Sets one attribute of a subscription, or returns why the value is invalid.
Outcome<Done> set_attribute(Subscription& to, const std::string& name, const std::string& value) {
  if (name == "RawMessageDelivery") {
    to.raw = TRY(read_bool(name, value));
    if (to.raw && to.protocol != Protocol::http && to.protocol != Protocol::https &&
        to.protocol != Protocol::command)
      return sns_invalid(
          "Attributes Reason: RawMessageDelivery is not supported for the protocol " +
          std::string(notify::kProtocols.text(to.protocol)));
    return Done{};
  }
  if (name == "FilterPolicy") {
    const auto json = parse_json(value);
    const bool none = value.empty() || (json && json->is_object() && json->empty());
    if (!none) {
      const auto compiled = notify::Pattern::compile(value, notify::kFilterPolicyBytesMax);
      if (!compiled) return sns_invalid("FilterPolicy: " + compiled.error().message);
    }
    to.filter_policy = none ? "" : value;
    return Done{};
  }
  if (name == "FilterPolicyScope") {
    if (value != "MessageAttributes" && value != "MessageBody")
      return sns_invalid("FilterPolicyScope: Invalid value [" + shorten(value, 100) +
                         "]. Please use either MessageBody or MessageAttributes");
    to.filters_body = value == "MessageBody";
    return Done{};
  }
  if (name == "DeliveryPolicy") {
    const auto json = parse_json(value);
    if (value.size() > kDeliveryPolicyBytesMax || (!value.empty() && (!json || !json->is_object())))
      return sns_invalid("DeliveryPolicy: must be a JSON object of at most " +
                         std::to_string(kDeliveryPolicyBytesMax) + " bytes");
    to.delivery_policy = value;
    return Done{};
  }
  return sns_invalid("AttributeName: " + shorten(name, 100) +
                     " is unknown or not supported by this server");
}

Outcome<aws::SubscribeResponse> subscribe(Notifications& all, const Context& context,
                                          const aws::SubscribeInput& in) {
  TRY(check_topic_arn(context, *in.topic_arn));
  Subscription wanted;
  wanted.topic = *in.topic_arn;
  wanted.protocol = TRY(protocol_of(all, *in.protocol));
  wanted.endpoint = in.endpoint.value_or("");
  if (wanted.endpoint.empty()) return sns_invalid("Endpoint");
  TRY(check_endpoint(wanted.protocol, wanted.endpoint));
  wanted.creator = context.principal.name;
  if (in.attributes)
    for (const auto& [name, value] : *in.attributes) TRY(set_attribute(wanted, name, value));
  const Subscription made = TRY(with_failure(failure_for, all.subscribe(std::move(wanted))));
  const bool shown = made.confirmed || in.return_subscription_arn.value_or(false);
  return aws::SubscribeResponse{.subscription_arn = shown ? made.arn : std::string(kPendingShown)};
}

Outcome<aws::ConfirmSubscriptionResponse> confirm(Notifications& all, const Context& context,
                                                  const aws::ConfirmSubscriptionInput& in) {
  TRY(check_topic_arn(context, *in.topic_arn));
  const bool authenticate =
      in.authenticate_on_unsubscribe
          ? TRY(read_bool("AuthenticateOnUnsubscribe", *in.authenticate_on_unsubscribe))
          : false;
  const Subscription found =
      TRY(with_failure(failure_for, all.confirm(*in.topic_arn, *in.token, authenticate)));
  return aws::ConfirmSubscriptionResponse{.subscription_arn = found.arn};
}

// -- lists and attributes

aws::Subscription to_shape(const Context& context, const Subscription& each) {
  return {.subscription_arn = each.confirmed ? each.arn : std::string(kPending),
          .owner = context.principal.account,
          .protocol = std::string(notify::kProtocols.text(each.protocol)),
          .endpoint = each.endpoint,
          .topic_arn = each.topic};
}

// Returns a page of the subscriptions whose keys begin with a prefix.
template <class Out>
Outcome<Out> list_page(const Notifications& all, const Context& context, const std::string& prefix,
                       const std::optional<std::string>& token) {
  const auto catalogue = all.catalogue();
  std::vector<std::string> arns;
  for (auto at = catalogue->subscriptions.lower_bound(prefix);
       at != catalogue->subscriptions.end() && at->first.starts_with(prefix); ++at)
    arns.push_back(at->first);
  const PageOf page = TRY(page_of(arns, token));
  Out out{.subscriptions = std::vector<aws::Subscription>(), .next_token = page.next_token};
  for (size_t i = page.first; i < page.end; ++i)
    out.subscriptions->push_back(to_shape(context, *catalogue->subscription(arns[i])));
  return out;
}

Outcome<aws::GetSubscriptionAttributesResponse> attributes(
    const Notifications& all, const Context& context,
    const aws::GetSubscriptionAttributesInput& in) {
  const auto catalogue = all.catalogue();
  const Subscription* found = catalogue->subscription(*in.subscription_arn);
  if (!found) return sns_failure(404, "NotFound", "Subscription does not exist");
  std::map<std::string, std::string> out{
      {"SubscriptionArn", found->arn},
      {"TopicArn", found->topic},
      {"Owner", context.principal.account},
      {"Protocol", std::string(notify::kProtocols.text(found->protocol))},
      {"Endpoint", found->endpoint},
      {"PendingConfirmation", found->confirmed ? "false" : "true"},
      {"ConfirmationWasAuthenticated", found->authenticate_on_unsubscribe ? "true" : "false"},
      {"RawMessageDelivery", found->raw ? "true" : "false"},
      {"SubscriptionPrincipal",
       "arn:aws:iam::" + context.principal.account + ":user/" + found->creator}};
  if (!found->filter_policy.empty()) {
    out["FilterPolicy"] = found->filter_policy;
    out["FilterPolicyScope"] = found->filters_body ? "MessageBody" : "MessageAttributes";
  }
  if (!found->delivery_policy.empty()) out["DeliveryPolicy"] = found->delivery_policy;
  return aws::GetSubscriptionAttributesResponse{.attributes = std::move(out)};
}

Outcome<aws::Nothing> change(Notifications& all, const aws::SetSubscriptionAttributesInput& in) {
  std::optional<Failure> failure;
  const auto changed =
      all.change_subscription(*in.subscription_arn, [&](Subscription& each) -> Result<void> {
        const auto set = set_attribute(each, *in.attribute_name, in.attribute_value.value_or(""));
        if (set) return {};
        failure = set.failure(shapes::sns::kService);
        return invalid(failure->message);
      });
  if (failure) return *failure;
  if (!changed) return failure_for(changed.error());
  return aws::Nothing{};
}

Outcome<aws::Nothing> unsubscribe(Notifications& all, const aws::UnsubscribeInput& in) {
  if (split(*in.subscription_arn, ':').size() != 7)
    return sns_invalid("SubscriptionArn Reason: An ARN must have at least 6 elements");
  TRY(with_failure(failure_for, all.unsubscribe(*in.subscription_arn)));
  return aws::Nothing{};
}

}  // namespace

void add_subscriptions(OperationTable& table, const Settings&, const Services& services) {
  table.add<aws::Subscribe>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::SubscribeResponse> {
        return subscribe(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::ConfirmSubscription>(
      [&services](const Context& context,
                  const auto& in) -> Outcome<aws::ConfirmSubscriptionResponse> {
        return confirm(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::Unsubscribe>([&services](const Context&, const auto& in) -> Outcome<aws::Nothing> {
    return unsubscribe(*TRY(notifications_of(services)), in);
  });
  table.add<aws::ListSubscriptions>(
      [&services](const Context& context,
                  const auto& in) -> Outcome<aws::ListSubscriptionsResponse> {
        return list_page<aws::ListSubscriptionsResponse>(
            *TRY(notifications_of(services)), context,
            "arn:aws:sns:" + context.region + ":" + context.principal.account + ":", in.next_token);
      });
  table.add<aws::ListSubscriptionsByTopic>(
      [&services](const Context& context,
                  const auto& in) -> Outcome<aws::ListSubscriptionsByTopicResponse> {
        const auto* all = TRY(notifications_of(services));
        TRY(check_topic_arn(context, *in.topic_arn));
        if (!all->catalogue()->topic(*in.topic_arn))
          return sns_failure(404, "NotFound", "Topic does not exist");
        return list_page<aws::ListSubscriptionsByTopicResponse>(*all, context, *in.topic_arn + ":",
                                                                in.next_token);
      });
  table.add<aws::GetSubscriptionAttributes>(
      [&services](const Context& context,
                  const auto& in) -> Outcome<aws::GetSubscriptionAttributesResponse> {
        return attributes(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::SetSubscriptionAttributes>(
      [&services](const Context&, const auto& in) -> Outcome<aws::Nothing> {
        return change(*TRY(notifications_of(services)), in);
      });
}

}  // namespace trainyard::api::sns
