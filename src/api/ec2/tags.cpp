// Implements the operations on the tags of network resources, and checks tags.
#include "base/text.hpp"
#include "ec2/common.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr size_t kTagKeyCharactersMax = 128, kTagValueCharactersMax = 256;  // as AWS
constexpr size_t kTaggedAtOnceMax = 1'000;                                  // resources, as AWS

Outcome<Done> check_tag(const std::string& key, const std::string& value) {
  if (key.empty()) return invalid_value(key, "key", "Tag key cannot be empty.");
  if (count_characters(key) > kTagKeyCharactersMax)
    return invalid_value(key, "key", "Tag key exceeds the maximum length of 128 characters.");
  if (count_characters(value) > kTagValueCharactersMax)
    return invalid_value(value, "value", "Tag value exceeds the maximum length of 256 characters.");
  if (key.starts_with("aws:"))
    return invalid_value(key, "key",
                         "Tag keys starting with 'aws:' are reserved for internal use.");
  return Done{};
}

// Calls visit(tags, resource type, id) for each resource that can have tags.
template <class N, class Visit>
void for_each_tagged(N& networks, const Visit& visit) {
  const auto all = [&](auto& resources, const IdForm& form) {
    for (auto& [id, each] : resources) visit(each.tags, form, id);
  };
  all(networks.vpcs, kVpcId);
  all(networks.subnets, kSubnetId);
  all(networks.groups, kGroupId);
  all(networks.gateways, kGatewayId);
  all(networks.route_tables, kRouteTableId);
  for (auto& [id, group] : networks.groups)
    for (auto& rule : group.rules) visit(rule.tags, kRuleId, rule.id);
}

Failure unknown_resource(const std::string& id) {
  for (const IdForm* form : {&kVpcId, &kSubnetId, &kGroupId, &kGatewayId, &kRouteTableId, &kRuleId})
    if (id.starts_with(form->prefix)) return invalid_id(*form, id);
  return ec2_failure("InvalidID", "The ID '" + shorten(id, 256) + "' is not valid");
}

// Finds the tags of the named resources.
Outcome<std::vector<Tags*>> tags_of(Networks& networks, const std::vector<std::string>& ids) {
  if (ids.size() > kTaggedAtOnceMax)
    return invalid_parameter_value("A request tags at most " + std::to_string(kTaggedAtOnceMax) +
                                   " resources");
  std::map<std::string, Tags*, std::less<>> by_id;
  for_each_tagged(networks, [&](Tags& tags, const IdForm&, const std::string& id) {
    by_id.emplace(id, &tags);
  });
  std::vector<Tags*> found;
  for (const std::string& id : ids) {
    const auto at = by_id.find(id);
    if (at == by_id.end()) return unknown_resource(id);
    found.push_back(at->second);
  }
  return found;
}

Outcome<aws::Nothing> create_tags(const Edit& edit, const aws::CreateTagsRequest& in) {
  for (Tags* tags : TRY(tags_of(edit.networks, *in.resources))) TRY(add_tags(*tags, *in.tags));
  return aws::Nothing{};
}

// Deletes tags: all if the request names none; a tag without a value whatever its value is.
Outcome<aws::Nothing> delete_tags(const Edit& edit, const aws::DeleteTagsRequest& in) {
  for (Tags* tags : TRY(tags_of(edit.networks, *in.resources))) {
    if (!in.tags || in.tags->empty()) tags->clear();
    for (const aws::Tag& tag : in.tags.value_or(std::vector<aws::Tag>())) {
      const auto found = tags->find(tag.key.value_or(""));
      if (found != tags->end() && (!tag.value || *tag.value == found->second)) tags->erase(found);
    }
  }
  return aws::Nothing{};
}

constexpr Attribute<aws::TagDescription> kTagAttributes[] = {
    {"key", [](const aws::TagDescription& tag) { return texts(tag.key); }},
    {"value", [](const aws::TagDescription& tag) { return texts(tag.value); }},
    {"resource-id", [](const aws::TagDescription& tag) { return texts(tag.resource_id); }},
    {"resource-type", [](const aws::TagDescription& tag) { return texts(tag.resource_type); }},
};

Outcome<aws::DescribeTagsResult> describe_tags(const Networks& networks, const Context&,
                                               const aws::DescribeTagsRequest& in) {
  std::vector<aws::TagDescription> shown;
  for_each_tagged(networks, [&](const Tags& tags, const IdForm& form, const std::string& id) {
    for (const auto& [key, value] : tags)
      shown.push_back({.key = key,
                       .resource_id = id,
                       .resource_type = std::string(form.resource_type),
                       .value = value});
  });
  TRY(keep_matching(in.filters, kTagAttributes, shown));
  aws::DescribeTagsResult out;
  out.tags = TRY(page_of(
      in, std::move(shown),
      [](const aws::TagDescription& tag) { return *tag.resource_id + "/" + *tag.key; },
      out.next_token));
  return out;
}

}  // namespace

Outcome<Done> add_tags(Tags& tags, const std::vector<aws::Tag>& added) {
  for (const aws::Tag& tag : added) {
    const std::string key = tag.key.value_or(""), value = tag.value.value_or("");
    TRY(check_tag(key, value));
    tags[key] = value;
  }
  if (tags.size() > kTagsMax)
    return ec2_failure("TagLimitExceeded",
                       "The maximum number of tags per resource is " + std::to_string(kTagsMax));
  return Done{};
}

Outcome<Tags> tags_for(const IdForm& form,
                       const std::optional<std::vector<aws::TagSpecification>>& specifications) {
  Tags tags;
  if (!specifications) return tags;
  for (const aws::TagSpecification& each : *specifications) {
    if (each.resource_type != form.resource_type)
      return invalid_parameter_value("'" + each.resource_type.value_or("null") +
                                     "' is not a valid taggable resource type for this operation.");
    if (each.tags) TRY(add_tags(tags, *each.tags));
  }
  return tags;
}

void add_tag_operations(OperationTable& table, const Store& store) {
  add_change<aws::CreateTags>(table, store, create_tags);
  add_change<aws::DeleteTags>(table, store, delete_tags);
  add_read<aws::DescribeTags>(table, store, describe_tags);
}

}  // namespace trainyard::api::ec2
