// Implements the operations on topics, their attributes and tags.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/json.hpp"
#include "base/text.hpp"
#include "sns/common.hpp"

namespace trainyard::api::sns {
namespace {

using notify::Notifications;
using notify::Topic;

constexpr size_t kNameMax = 256;
constexpr size_t kDisplayNameMax = 100;
constexpr size_t kPolicyBytesMax = 30 << 10;
// Attributes that are stored and returned, but have no effect.
constexpr std::array<std::string_view, 2> kKept = {"DeliveryPolicy", "Policy"};

std::string arn_of(const Context& context, const std::string& name) {
  return "arn:aws:sns:" + context.region + ":" + context.principal.account + ":" + name;
}

Outcome<Done> check_name(const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= kNameMax && std::ranges::all_of(name, [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_';
      });
  if (good) return Done{};
  if (name.ends_with(".fifo"))
    return sns_invalid("Topic Name: FIFO topics are not offered by this server");
  return sns_invalid("Topic Name");
}

Outcome<Done> check_attribute(const std::string& name, const std::string& value) {
  if (name == "DisplayName") {
    if (value.size() > kDisplayNameMax || !is_utf8(value))
      return sns_invalid("DisplayName: longer than " + std::to_string(kDisplayNameMax) + " bytes");
    return Done{};
  }
  if (name == "SignatureVersion") {
    if (value == "2") return Done{};
    return sns_invalid("SignatureVersion: this server signs with version 2 (SHA-256) only");
  }
  if (std::ranges::find(kKept, name) != kKept.end()) {
    const auto json = parse_json(value);
    if (value.size() > kPolicyBytesMax || (!value.empty() && (!json || !json->is_object())))
      return sns_invalid(name + ": must be a JSON object of at most " +
                         std::to_string(kPolicyBytesMax) + " bytes");
    return Done{};
  }
  return sns_invalid("AttributeName: " + shorten(name, 100) +
                     " is unknown or not supported by this server");
}

Outcome<notify::Tags> tags_of(const std::vector<aws::Tag>& tags, notify::Tags present) {
  for (const auto& tag : tags) {
    if (tag.key->starts_with("aws:"))
      return sns_invalid("Tag Reason: Tag keys cannot begin with aws:");
    present[*tag.key] = *tag.value;
  }
  if (present.size() > kTagsMax)
    return sns_failure(400, "TagLimitExceeded",
                       "Could not complete request: tag quota of per resource exceeded");
  return present;
}

Outcome<aws::CreateTopicResponse> create(Notifications& all, const Context& context,
                                         const aws::CreateTopicInput& in) {
  TRY(check_name(*in.name));
  if (in.data_protection_policy && !in.data_protection_policy->empty())
    return sns_invalid("DataProtectionPolicy is not offered by this server");
  Topic topic;
  topic.arn = arn_of(context, *in.name);
  if (in.attributes)
    for (const auto& [name, value] : *in.attributes) {
      TRY(check_attribute(name, value));
      topic.attributes[name] = value;
    }
  if (in.tags) topic.tags = TRY(tags_of(*in.tags, {}));
  const Topic made = TRY(with_failure(failure_for, all.create_topic(std::move(topic))));
  return aws::CreateTopicResponse{.topic_arn = made.arn};
}

Outcome<aws::ListTopicsResponse> list(const Notifications& all, const Context& context,
                                      const aws::ListTopicsInput& in) {
  const std::string prefix = arn_of(context, "");
  std::vector<std::string> arns;
  const auto catalogue = all.catalogue();
  for (auto at = catalogue->topics.lower_bound(prefix);
       at != catalogue->topics.end() && at->first.starts_with(prefix); ++at)
    arns.push_back(at->first);
  const PageOf page = TRY(page_of(arns, in.next_token));
  aws::ListTopicsResponse out{.topics = std::vector<aws::Topic>(), .next_token = page.next_token};
  for (size_t i = page.first; i < page.end; ++i) out.topics->push_back({.topic_arn = arns[i]});
  return out;
}

// Returns the policy of a new topic, as on AWS: the account's principals have the rights of their
// own policies.
std::string default_policy(const Context& context, const std::string& arn) {
  return dump(Json{
      {"Version", "2008-10-17"},
      {"Id", "__default_policy_ID"},
      {"Statement",
       Json::array({{{"Sid", "__default_statement_ID"},
                     {"Effect", "Allow"},
                     {"Principal", {{"AWS", "*"}}},
                     {"Action", Json::array({"SNS:GetTopicAttributes", "SNS:SetTopicAttributes",
                                             "SNS:AddPermission", "SNS:RemovePermission",
                                             "SNS:DeleteTopic", "SNS:Subscribe",
                                             "SNS:ListSubscriptionsByTopic", "SNS:Publish"})},
                     {"Resource", arn},
                     {"Condition",
                      {{"StringEquals", {{"AWS:SourceOwner", context.principal.account}}}}}}})}});
}

constexpr std::string_view kDefaultDeliveryPolicy =
    R"({"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":10,"maxDelayTarget":600,)"
    R"("numRetries":49,"numMaxDelayRetries":27,"numNoDelayRetries":2,"numMinDelayRetries":10,)"
    R"("backoffFunction":"exponential"},"disableSubscriptionOverrides":false}})";

Outcome<aws::GetTopicAttributesResponse> attributes(const Notifications& all,
                                                    const Context& context,
                                                    const aws::GetTopicAttributesInput& in) {
  TRY(check_topic_arn(context, *in.topic_arn));
  const auto catalogue = all.catalogue();
  const Topic* topic = catalogue->topic(*in.topic_arn);
  if (!topic) return sns_failure(404, "NotFound", "Topic does not exist");
  size_t confirmed = 0, pending = 0;
  for (const auto& each : catalogue->of_topic(topic->arn))
    ++(each->confirmed ? confirmed : pending);
  std::map<std::string, std::string> out = topic->attributes;
  out.try_emplace("DisplayName", "");
  out.try_emplace("Policy", default_policy(context, topic->arn));
  out.try_emplace("SignatureVersion", "2");
  out["TopicArn"] = topic->arn;
  out["Owner"] = context.principal.account;
  out["SubscriptionsConfirmed"] = std::to_string(confirmed);
  out["SubscriptionsPending"] = std::to_string(pending);
  out["SubscriptionsDeleted"] = "0";
  out["EffectiveDeliveryPolicy"] = kDefaultDeliveryPolicy;
  return aws::GetTopicAttributesResponse{.attributes = std::move(out)};
}

Outcome<aws::Nothing> set_attribute(Notifications& all, const Context& context,
                                    const aws::SetTopicAttributesInput& in) {
  TRY(check_topic_arn(context, *in.topic_arn));
  const std::string value = in.attribute_value.value_or("");
  TRY(check_attribute(*in.attribute_name, value));
  TRY(with_failure(failure_for, all.change_topic(*in.topic_arn, [&](Topic& topic) {
    if (value.empty())
      topic.attributes.erase(*in.attribute_name);
    else
      topic.attributes[*in.attribute_name] = value;
  })));
  return aws::Nothing{};
}

// -- tags

Outcome<std::shared_ptr<const notify::Catalogue>> catalogue_with(const Notifications& all,
                                                                 const std::string& arn) {
  auto catalogue = all.catalogue();
  if (!catalogue->topic(arn))
    return sns_failure(404, "ResourceNotFound", "Resource does not exist");
  return catalogue;
}

Outcome<aws::TagResourceResponse> tag(Notifications& all, const aws::TagResourceRequest& in) {
  const auto catalogue = TRY(catalogue_with(all, *in.resource_arn));
  const auto tags = TRY(tags_of(*in.tags, catalogue->topic(*in.resource_arn)->tags));
  TRY(with_failure(failure_for,
                   all.change_topic(*in.resource_arn, [&](Topic& topic) { topic.tags = tags; })));
  return aws::TagResourceResponse{};
}

Outcome<aws::UntagResourceResponse> untag(Notifications& all, const aws::UntagResourceRequest& in) {
  TRY(catalogue_with(all, *in.resource_arn));
  TRY(with_failure(failure_for, all.change_topic(*in.resource_arn, [&](Topic& topic) {
    for (const auto& key : *in.tag_keys) topic.tags.erase(key);
  })));
  return aws::UntagResourceResponse{};
}

Outcome<aws::ListTagsForResourceResponse> list_tags(const Notifications& all,
                                                    const aws::ListTagsForResourceRequest& in) {
  const auto catalogue = TRY(catalogue_with(all, *in.resource_arn));
  aws::ListTagsForResourceResponse out{.tags = std::vector<aws::Tag>()};
  for (const auto& [key, value] : catalogue->topic(*in.resource_arn)->tags)
    out.tags->push_back({.key = key, .value = value});
  return out;
}

}  // namespace

void add_topics(OperationTable& table, const Settings&, const Services& services) {
  table.add<aws::CreateTopic>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::CreateTopicResponse> {
        return create(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::DeleteTopic>([&services](const Context& context,
                                          const auto& in) -> Outcome<aws::Nothing> {
    TRY(check_topic_arn(context, *in.topic_arn));
    TRY(with_failure(failure_for, TRY(notifications_of(services))->delete_topic(*in.topic_arn)));
    return aws::Nothing{};
  });
  table.add<aws::ListTopics>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::ListTopicsResponse> {
        return list(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::GetTopicAttributes>(
      [&services](const Context& context,
                  const auto& in) -> Outcome<aws::GetTopicAttributesResponse> {
        return attributes(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::SetTopicAttributes>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::Nothing> {
        return set_attribute(*TRY(notifications_of(services)), context, in);
      });
  table.add<aws::TagResource>(
      [&services](const Context&, const auto& in) -> Outcome<aws::TagResourceResponse> {
        return tag(*TRY(notifications_of(services)), in);
      });
  table.add<aws::UntagResource>(
      [&services](const Context&, const auto& in) -> Outcome<aws::UntagResourceResponse> {
        return untag(*TRY(notifications_of(services)), in);
      });
  table.add<aws::ListTagsForResource>(
      [&services](const Context&, const auto& in) -> Outcome<aws::ListTagsForResourceResponse> {
        return list_tags(*TRY(notifications_of(services)), in);
      });
}

}  // namespace trainyard::api::sns
