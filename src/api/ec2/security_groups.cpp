// Implements the operations on security groups, except those on their rules.
#include "ec2/common.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr size_t kGroupsMax = 2'500;        // of a region, as AWS
constexpr size_t kNameCharactersMax = 255;  // as AWS, also of a description
constexpr std::string_view kDefaultName = "default";
constexpr std::string_view kPunctuation = " ._-:/()#,@[]+=&;{}!$*";

bool is_valid_text(std::string_view text) {
  return text.size() <= kNameCharactersMax && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  kPunctuation.find(c) != std::string_view::npos;
         });
}

Outcome<Done> check_texts(const aws::CreateSecurityGroupRequest& in) {
  constexpr std::string_view kWanted =
      "Valid values are strings of up to 255 characters from the following set: "
      "a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*";
  if (*in.group_name == kDefaultName)
    return invalid_parameter_value("Cannot use reserved security group name: default");
  if (in.group_name->starts_with(kGroupId.prefix))
    return invalid_value(*in.group_name, "GroupName", "Group names may not be in the format sg-*");
  if (in.group_name->empty() || !is_valid_text(*in.group_name))
    return invalid_value(*in.group_name, "groupName", kWanted);
  if (in.description->empty() || !is_valid_text(*in.description))
    return invalid_value(*in.description, "groupDescription", kWanted);
  return Done{};
}

Outcome<const Vpc*> default_vpc_of(const Networks& networks) {
  const Vpc* vpc = networks.default_vpc();
  if (!vpc) return ec2_failure("VPCIdNotSpecified", "No default VPC for this user");
  return vpc;
}

const SecurityGroup* find_by_name(const Networks& networks, const std::string& vpc,
                                  const std::string& name) {
  for (const auto& [id, group] : networks.groups)
    if (group.vpc == vpc && group.name == name) return &group;
  return nullptr;
}

// Finds a group of the default VPC by its name.
Outcome<const SecurityGroup*> by_name(const Networks& networks, const std::string& name) {
  const Vpc& vpc = *TRY(default_vpc_of(networks));
  if (const SecurityGroup* group = find_by_name(networks, vpc.id, name)) return group;
  return ec2_failure(kGroupId.not_found, "The security group '" + shorten(name, 256) +
                                             "' does not exist in default VPC '" + vpc.id + "'");
}

Outcome<aws::CreateSecurityGroupResult> create_security_group(
    const Edit& edit, const aws::CreateSecurityGroupRequest& in) {
  Networks& networks = edit.networks;
  TRY(check_texts(in));
  const std::string vpc = in.vpc_id ? TRY(find(networks.vpcs, kVpcId, *in.vpc_id))->id
                                    : TRY(default_vpc_of(networks))->id;
  if (find_by_name(networks, vpc, *in.group_name))
    return ec2_failure("InvalidGroup.Duplicate", "The security group '" + *in.group_name +
                                                     "' already exists for VPC '" + vpc + "'");
  if (networks.groups.size() >= kGroupsMax)
    return ec2_failure(
        "SecurityGroupLimitExceeded",
        "The maximum number of security groups for VPC '" + vpc + "' has been reached.");
  SecurityGroup group;
  group.id = edit.make_id(kGroupId.prefix);
  group.vpc = vpc;
  group.name = *in.group_name;
  group.description = *in.description;
  group.rules = {all_egress(edit.make_id)};
  group.tags = TRY(tags_for(kGroupId, in.tag_specifications));
  aws::CreateSecurityGroupResult out;
  out.group_id = group.id;
  if (!group.tags.empty()) out.tags = shown_tags<aws::Tag>(group.tags);
  out.security_group_arn = arn_of(edit.context, kGroupId.resource_type, group.id);
  networks.groups[group.id] = std::move(group);
  return out;
}

aws::SecurityGroup to_shape(const Context& context, const SecurityGroup& group) {
  aws::SecurityGroup out;
  out.group_id = group.id;
  out.ip_permissions_egress = shown_permissions(context, group, true);
  out.tags = shown_tags<aws::Tag>(group.tags);
  out.vpc_id = group.vpc;
  out.security_group_arn = arn_of(context, kGroupId.resource_type, group.id);
  out.owner_id = context.principal.account;
  out.group_name = group.name;
  out.description = group.description;
  out.ip_permissions = shown_permissions(context, group, false);
  return out;
}

// Returns the values of one member of a group's permissions.
template <class Get>
Texts of_permissions(const std::optional<std::vector<aws::IpPermission>>& permissions,
                     const Get& get) {
  Texts found;
  for (const aws::IpPermission& each : *permissions)
    for (std::string& text : get(each)) found.push_back(std::move(text));
  return found;
}

Texts protocols(const aws::IpPermission& each) { return texts(each.ip_protocol); }
Texts from_ports(const aws::IpPermission& each) { return texts(each.from_port); }
Texts to_ports(const aws::IpPermission& each) { return texts(each.to_port); }
Texts cidrs(const aws::IpPermission& each) {
  Texts found;
  for (const aws::IpRange& range : *each.ip_ranges) found.push_back(*range.cidr_ip);
  return found;
}
Texts peers(const aws::IpPermission& each) {
  Texts found;
  for (const aws::UserIdGroupPair& pair : *each.user_id_group_pairs)
    found.push_back(*pair.group_id);
  return found;
}

using Group = aws::SecurityGroup;
constexpr Attribute<Group> kGroupAttributes[] = {
    {"group-id", [](const Group& group) { return texts(group.group_id); }},
    {"group-name", [](const Group& group) { return texts(group.group_name); }},
    {"description", [](const Group& group) { return texts(group.description); }},
    {"owner-id", [](const Group& group) { return texts(group.owner_id); }},
    {"vpc-id", [](const Group& group) { return texts(group.vpc_id); }},
    {"ip-permission.protocol",
     [](const Group& group) { return of_permissions(group.ip_permissions, protocols); }},
    {"ip-permission.from-port",
     [](const Group& group) { return of_permissions(group.ip_permissions, from_ports); }},
    {"ip-permission.to-port",
     [](const Group& group) { return of_permissions(group.ip_permissions, to_ports); }},
    {"ip-permission.cidr",
     [](const Group& group) { return of_permissions(group.ip_permissions, cidrs); }},
    {"ip-permission.group-id",
     [](const Group& group) { return of_permissions(group.ip_permissions, peers); }},
    {"egress.ip-permission.protocol",
     [](const Group& group) { return of_permissions(group.ip_permissions_egress, protocols); }},
    {"egress.ip-permission.from-port",
     [](const Group& group) { return of_permissions(group.ip_permissions_egress, from_ports); }},
    {"egress.ip-permission.to-port",
     [](const Group& group) { return of_permissions(group.ip_permissions_egress, to_ports); }},
    {"egress.ip-permission.cidr",
     [](const Group& group) { return of_permissions(group.ip_permissions_egress, cidrs); }},
    {"egress.ip-permission.group-id",
     [](const Group& group) { return of_permissions(group.ip_permissions_egress, peers); }},
};

Outcome<aws::DescribeSecurityGroupsResult> describe_security_groups(
    const Networks& networks, const Context& context,
    const aws::DescribeSecurityGroupsRequest& in) {
  std::vector<const SecurityGroup*> wanted;
  if (!in.group_names || in.group_names->empty() || in.group_ids)
    wanted = TRY(named(networks.groups, kGroupId, in.group_ids));
  for (const std::string& name : in.group_names.value_or(std::vector<std::string>())) {
    const SecurityGroup* group = TRY(by_name(networks, name));
    if (std::ranges::find(wanted, group) == wanted.end()) wanted.push_back(group);
  }
  std::vector<Group> all;
  for (const SecurityGroup* group : wanted) all.push_back(to_shape(context, *group));
  TRY(keep_matching(in.filters, kGroupAttributes, all));
  aws::DescribeSecurityGroupsResult out;
  out.security_groups = TRY(page_of(
      in, std::move(all), [](const Group& group) { return *group.group_id; }, out.next_token));
  return out;
}

bool is_referenced(const Networks& networks, const SecurityGroup& group) {
  return std::ranges::any_of(networks.groups, [&](const auto& other) {
    return other.first != group.id && std::ranges::find(other.second.rules, group.id,
                                                        &Rule::group) != other.second.rules.end();
  });
}

Outcome<aws::DeleteSecurityGroupResult> delete_security_group(
    const Edit& edit, const aws::DeleteSecurityGroupRequest& in) {
  const SecurityGroup& group = *TRY(group_of(edit.networks, in.group_id, in.group_name));
  if (group.name == kDefaultName)
    return ec2_failure("CannotDelete", "the specified group: \"" + group.id + "\" name: \"" +
                                           group.name + "\" cannot be deleted by a user");
  if (is_referenced(edit.networks, group))
    return ec2_failure("DependencyViolation", "resource " + group.id + " has a dependent object");
  aws::DeleteSecurityGroupResult out{.return_ = true, .group_id = group.id};
  edit.networks.groups.erase(group.id);
  return out;
}

}  // namespace

Outcome<SecurityGroup*> group_of(Networks& networks, const std::optional<std::string>& id,
                                 const std::optional<std::string>& name) {
  if (id) return find(networks.groups, kGroupId, *id);
  if (!name) return absent_parameter("GroupId");
  return &networks.groups.at(TRY(by_name(networks, *name))->id);
}

void add_security_groups(OperationTable& table, const Store& store) {
  add_change<aws::CreateSecurityGroup>(table, store, create_security_group);
  add_read<aws::DescribeSecurityGroups>(table, store, describe_security_groups);
  add_change<aws::DeleteSecurityGroup>(table, store, delete_security_group);
}

}  // namespace trainyard::api::ec2
