#include "sns/common.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::api::sns {

Outcome<notify::Notifications*> notifications_of(const Services& services) {
  if (services.notifications) return services.notifications;
  return sns_failure(500, "InternalError", "This server offers no notifications.");
}

Failure failure_for(const Error& error) {
  using notify::NotifyFault;
  if (error.is(NotifyFault::no_topic)) return sns_failure(404, "NotFound", error.message);
  if (error.is(NotifyFault::no_subscription)) return sns_failure(404, "NotFound", error.message);
  if (error.is(NotifyFault::topic_differs))
    return sns_invalid("Attributes Reason: " + error.message);
  if (error.is(NotifyFault::token)) return sns_invalid("Token");
  if (error.is(NotifyFault::topic_limit))
    return sns_failure(403, "TopicLimitExceeded", error.message);
  if (error.is(NotifyFault::subscription_limit))
    return sns_failure(403, "SubscriptionLimitExceeded", error.message);
  if (error.is(NotifyFault::filter_policy)) return sns_invalid("FilterPolicy: " + error.message);
  return failure_of(shapes::sns::kService, error);
}

Outcome<Done> check_topic_arn(const Context& context, const std::string& arn) {
  const auto parts = split(arn, ':');
  if (parts.size() != 6 || parts[0] != "arn" || parts[1] != "aws" || parts[2] != "sns" ||
      parts[5].empty())
    return sns_invalid("TopicArn Reason: An ARN must have at least 6 elements, not " +
                       std::to_string(parts.size()));
  if (parts[3] != context.region) return sns_invalid("TopicArn");
  if (parts[4] != context.principal.account)
    return sns_failure(403, "AuthorizationError", "Topics of other accounts cannot be used.");
  return Done{};
}

Outcome<PageOf> page_of(const std::vector<std::string>& keys,
                        const std::optional<std::string>& token) {
  PageOf page;
  if (token && !token->empty()) {
    const auto last = from_base64(*token);
    if (!last) return sns_invalid("NextToken");
    page.first = size_t(std::ranges::upper_bound(keys, *last) - keys.begin());
  }
  page.end = std::min(keys.size(), page.first + kListMax);
  if (page.end < keys.size()) page.next_token = to_base64(keys[page.end - 1]);
  return page;
}

Outcome<bool> read_bool(const std::string& name, const std::string& value) {
  if (equals_ignoring_case(value, "true")) return true;
  if (equals_ignoring_case(value, "false")) return false;
  return sns_invalid(name + ": Invalid value [" + shorten(value, 100) +
                     "]. Must be true or false.");
}

}  // namespace trainyard::api::sns
