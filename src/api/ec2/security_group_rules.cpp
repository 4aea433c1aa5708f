// Implements the operations on the rules of security groups.
#include <map>
#include <span>
#include <tuple>

#include "base/text.hpp"
#include "ec2/common.hpp"
#include "ec2/ip_blocks.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr size_t kRulesMax = 60;  // of one group and direction, as AWS
constexpr int64_t kPortMax = 65'535, kIcmpMax = 255, kProtocolMax = 255;
constexpr size_t kDescriptionBytesMax = 255;  // as AWS

bool has_ports(std::string_view protocol) { return protocol == "tcp" || protocol == "udp"; }

// "6" -> "tcp". Errors: InvalidParameterValue.
Outcome<std::string> protocol_of(const std::optional<std::string>& given) {
  if (!given) return absent_parameter("ipProtocol");
  const std::string text = to_lower(*given);
  for (const auto& [number, name] : {std::pair{"6", "tcp"},
                                     {"17", "udp"},
                                     {"1", "icmp"},
                                     {"58", "icmpv6"},
                                     {"-1", "-1"},
                                     {"all", "-1"}})
    if (text == number || text == name) return std::string(name);
  const auto number = parse_int(text);
  if (!number || *number < 0 || *number > kProtocolMax)
    return invalid_parameter_value("Invalid value '" + shorten(*given, 100) +
                                   "' for IP protocol. Unknown protocol.");
  return std::to_string(*number);
}

// Sets protocol and ports of a rule.
Outcome<Done> set_ports(const aws::IpPermission& in, Rule& rule) {
  rule.protocol = TRY(protocol_of(in.ip_protocol));
  const bool icmp = rule.protocol.starts_with("icmp");
  if (!has_ports(rule.protocol) && !icmp) return Done{};  // other protocols have none
  if (has_ports(rule.protocol) && (!in.from_port || !in.to_port))
    return invalid_parameter_value(
        "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.");
  rule.from = in.from_port.value_or(-1);
  rule.to = in.to_port.value_or(-1);
  if (icmp) {
    if (rule.from < -1 || rule.from > kIcmpMax || rule.to < -1 || rule.to > kIcmpMax)
      return invalid_parameter_value("ICMP type and code must be from -1 to 255");
    return Done{};
  }
  if (rule.from == -1 && rule.to == -1) {  // all ports
    rule.from = 0;
    rule.to = kPortMax;
  }
  for (const int64_t port : {rule.from, rule.to})
    if (port < 0 || port > kPortMax)
      return invalid_parameter_value("TCP/UDP port (" + std::to_string(port) + ") out of range");
  if (rule.from > rule.to)
    return invalid_parameter_value("Invalid TCP/UDP port range (" + std::to_string(rule.from) +
                                   ":" + std::to_string(rule.to) + ")");
  return Done{};
}

Outcome<Done> set_description(const std::optional<std::string>& text, Rule& rule) {
  rule.description = text.value_or("");
  if (rule.description.size() > kDescriptionBytesMax)
    return invalid_parameter_value(
        "Invalid rule description. Valid descriptions are strings less than 256 characters from "
        "the following set: a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*");
  return Done{};
}

// Finds the group that a rule names by id, or by its name in the same VPC.
Outcome<std::string> peer_of(const Networks& networks, const SecurityGroup& group,
                             const aws::UserIdGroupPair& pair) {
  if (!pair.group_id) {
    for (const auto& [id, other] : networks.groups)
      if (other.vpc == group.vpc && other.name == pair.group_name) return id;
    return ec2_failure(kGroupId.not_found,
                       "The security group '" + pair.group_name.value_or("") + "' does not exist");
  }
  const SecurityGroup& peer = *TRY(find(networks.groups, kGroupId, *pair.group_id));
  if (peer.vpc != group.vpc)
    return ec2_failure("InvalidGroup.NotFound",
                       "You have specified two resources that belong to different networks.");
  return peer.id;
}

// Adds the rules of one permission: one for each peer.
Outcome<Done> add_rules(const Networks& networks, const SecurityGroup& group, bool egress,
                        const aws::IpPermission& in, std::vector<Rule>& rules) {
  Rule common;
  common.egress = egress;
  TRY(set_ports(in, common));
  const size_t before = rules.size();
  const auto add = [&]() -> Rule& {
    rules.push_back(common);
    return rules.back();
  };
  for (const auto& range : in.ip_ranges.value_or(std::vector<aws::IpRange>())) {
    const auto block = parse_ipv4_block(range.cidr_ip.value_or(""));
    if (!block)
      return invalid_parameter_value("CIDR block " + shorten(range.cidr_ip.value_or(""), 100) +
                                     " is malformed");
    Rule& rule = add();
    rule.cidr = to_string(*block);
    TRY(set_description(range.description, rule));
  }
  for (const auto& range : in.ipv6_ranges.value_or(std::vector<aws::Ipv6Range>())) {
    auto block = checked_ipv6_block(range.cidr_ipv6.value_or(""));
    if (!block)
      return invalid_parameter_value("CIDR block " + shorten(range.cidr_ipv6.value_or(""), 100) +
                                     " is malformed");
    Rule& rule = add();
    rule.cidr6 = *std::move(block);
    TRY(set_description(range.description, rule));
  }
  for (const auto& pair : in.user_id_group_pairs.value_or(std::vector<aws::UserIdGroupPair>())) {
    Rule& rule = add();
    rule.group = TRY(peer_of(networks, group, pair));
    TRY(set_description(pair.description, rule));
  }
  // This server keeps no prefix lists.
  if (in.prefix_list_ids && !in.prefix_list_ids->empty()) {
    const std::string id = in.prefix_list_ids->front().prefix_list_id.value_or("");
    return ec2_failure("InvalidPrefixListId.NotFound",
                       "The prefix list ID '" + shorten(id, 100) + "' does not exist");
  }
  if (rules.size() == before)
    return missing_parameter("The request must contain a source or destination for the rule");
  return Done{};
}

// Reads the rules of a request, which has them as permissions or, in an older form, as its members.
template <class In>
Outcome<std::vector<Rule>> rules_of(const Networks& networks, const SecurityGroup& group,
                                    bool egress, const In& in) {
  std::vector<aws::IpPermission> permissions =
      in.ip_permissions.value_or(std::vector<aws::IpPermission>());
  if (in.ip_protocol || in.cidr_ip || in.source_security_group_name) {
    aws::IpPermission flat;
    flat.ip_protocol = in.source_security_group_name && !in.ip_protocol ? "-1" : in.ip_protocol;
    flat.from_port = in.from_port;
    flat.to_port = in.to_port;
    if (in.cidr_ip) flat.ip_ranges = {{.description = {}, .cidr_ip = in.cidr_ip}};
    if (in.source_security_group_name) {
      flat.user_id_group_pairs.emplace().emplace_back().group_name = in.source_security_group_name;
    }
    permissions.push_back(std::move(flat));
  }
  std::vector<Rule> rules;
  for (const aws::IpPermission& each : permissions)
    TRY(add_rules(networks, group, egress, each, rules));
  if (rules.empty()) return absent_parameter("ipPermissions");
  return rules;
}

// Returns whether both rules allow the same traffic. Ids, descriptions and tags may differ.
bool same(const Rule& a, const Rule& b) {
  return a.egress == b.egress && a.protocol == b.protocol && a.from == b.from && a.to == b.to &&
         a.cidr == b.cidr && a.cidr6 == b.cidr6 && a.group == b.group;
}

Failure duplicate(const Rule& rule) {
  std::string text = "the specified rule \"peer: ";
  text += !rule.cidr.empty() ? rule.cidr : !rule.cidr6.empty() ? rule.cidr6 : rule.group;
  text += ", " + (rule.protocol == "-1" ? "ALL" : to_upper(rule.protocol));
  if (has_ports(rule.protocol))
    text += ", from port: " + std::to_string(rule.from) + ", to port: " + std::to_string(rule.to);
  return ec2_failure("InvalidPermission.Duplicate", text + ", ALLOW\" already exists");
}

// -- descriptions

std::optional<std::string> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Sets the members that the descriptions of existing and of revoked rules share.
template <class Description>
Description description_of(const SecurityGroup& group, const Rule& rule) {
  Description out;
  out.security_group_rule_id = rule.id;
  out.group_id = group.id;
  out.is_egress = rule.egress;
  out.ip_protocol = rule.protocol;
  out.from_port = rule.from;
  out.to_port = rule.to;
  out.cidr_ipv4 = given(rule.cidr);
  out.cidr_ipv6 = given(rule.cidr6);
  out.description = given(rule.description);
  return out;
}

aws::SecurityGroupRule to_shape(const Context& context, const SecurityGroup& group,
                                const Rule& rule) {
  auto out = description_of<aws::SecurityGroupRule>(group, rule);
  out.group_owner_id = context.principal.account;
  if (!rule.group.empty()) {
    out.referenced_group_info.emplace();
    out.referenced_group_info->group_id = rule.group;
    out.referenced_group_info->user_id = context.principal.account;
  }
  out.tags = shown_tags<aws::Tag>(rule.tags);
  out.security_group_rule_arn = arn_of(context, kRuleId.resource_type, rule.id);
  return out;
}

aws::RevokedSecurityGroupRule revoked(const SecurityGroup& group, const Rule& rule) {
  auto out = description_of<aws::RevokedSecurityGroupRule>(group, rule);
  out.referenced_group_id = given(rule.group);
  return out;
}

void add_peer(const Context& context, const Rule& rule, aws::IpPermission& permission) {
  const auto description = given(rule.description);
  if (!rule.cidr.empty())
    permission.ip_ranges->push_back({.description = description, .cidr_ip = rule.cidr});
  else if (!rule.cidr6.empty())
    permission.ipv6_ranges->push_back({.description = description, .cidr_ipv6 = rule.cidr6});
  if (rule.group.empty()) return;
  aws::UserIdGroupPair pair;
  pair.description = description;
  pair.user_id = context.principal.account;
  pair.group_id = rule.group;
  permission.user_id_group_pairs->push_back(std::move(pair));
}

std::vector<aws::IpPermission> permissions_of(const Context& context, std::span<const Rule> rules) {
  std::vector<aws::IpPermission> all;
  std::map<std::tuple<std::string, int64_t, int64_t>, size_t> places;  // by protocol and ports
  for (const Rule& rule : rules) {
    const auto [place, made] =
        places.emplace(std::tuple(rule.protocol, rule.from, rule.to), all.size());
    if (made) {
      aws::IpPermission& permission = all.emplace_back();
      permission.ip_protocol = rule.protocol;
      if (has_ports(rule.protocol) || rule.protocol.starts_with("icmp")) {
        permission.from_port = rule.from;
        permission.to_port = rule.to;
      }
      permission.user_id_group_pairs.emplace();
      permission.ip_ranges.emplace();
      permission.ipv6_ranges.emplace();
      permission.prefix_list_ids.emplace();
    }
    add_peer(context, rule, all[place->second]);
  }
  return all;
}

// -- operations

template <class Operation>
void add_authorize(OperationTable& table, const Store& store, bool egress) {
  using In = typename Operation::Input;
  using Out = typename Operation::Output;
  add_change<Operation>(table, store, [egress](const Edit& edit, const In& in) -> Outcome<Out> {
    std::optional<std::string> name;
    if constexpr (requires { in.group_name; }) name = in.group_name;
    SecurityGroup& group = *TRY(group_of(edit.networks, in.group_id, name));
    const Tags tags = TRY(tags_for(kRuleId, in.tag_specifications));
    Out out{.return_ = true, .security_group_rules = std::vector<aws::SecurityGroupRule>()};
    for (Rule& rule : TRY(rules_of(edit.networks, group, egress, in))) {
      if (std::ranges::any_of(group.rules, [&](const Rule& each) { return same(each, rule); }))
        return duplicate(rule);
      rule.id = edit.make_id(kRuleId.prefix);
      rule.tags = tags;
      out.security_group_rules->push_back(to_shape(edit.context, group, rule));
      group.rules.push_back(std::move(rule));
    }
    if (size_t(std::ranges::count(group.rules, egress, &Rule::egress)) > kRulesMax)
      return ec2_failure("RulesPerSecurityGroupLimitExceeded",
                         "The maximum number of rules per security group has been reached.");
    return out;
  });
}

// Removes the rules with these ids from the group.
Outcome<std::vector<Rule>> remove_by_id(SecurityGroup& group, bool egress,
                                        const std::vector<std::string>& ids) {
  std::vector<Rule> taken;
  for (const std::string& id : ids) {
    const auto found = std::ranges::find(group.rules, id, &Rule::id);
    if (found == group.rules.end() || found->egress != egress) return invalid_id(kRuleId, id);
    taken.push_back(std::move(*found));
    group.rules.erase(found);
  }
  return taken;
}

// Removes equal rules from the group. In the default VPC, unknown rules are returned in `unknown`;
// elsewhere they are an error.
Outcome<std::vector<Rule>> remove_equal(const Networks& networks, SecurityGroup& group,
                                        const std::vector<Rule>& rules,
                                        std::vector<Rule>& unknown) {
  std::vector<Rule> taken;
  for (const Rule& rule : rules) {
    const auto found =
        std::ranges::find_if(group.rules, [&](const Rule& each) { return same(each, rule); });
    if (found != group.rules.end()) {
      taken.push_back(std::move(*found));
      group.rules.erase(found);
    } else if (networks.vpcs.at(group.vpc).is_default) {
      unknown.push_back(rule);
    } else {
      return ec2_failure("InvalidPermission.NotFound",
                         "The specified rule does not exist in this security group.");
    }
  }
  return taken;
}

template <class Operation>
void add_revoke(OperationTable& table, const Store& store, bool egress) {
  using In = typename Operation::Input;
  using Out = typename Operation::Output;
  add_change<Operation>(table, store, [egress](const Edit& edit, const In& in) -> Outcome<Out> {
    std::optional<std::string> name;
    if constexpr (requires { in.group_name; }) name = in.group_name;
    SecurityGroup& group = *TRY(group_of(edit.networks, in.group_id, name));
    std::vector<Rule> taken, unknown;
    if (in.security_group_rule_ids && !in.security_group_rule_ids->empty()) {
      taken = TRY(remove_by_id(group, egress, *in.security_group_rule_ids));
    } else {
      const auto rules = TRY(rules_of(edit.networks, group, egress, in));
      taken = TRY(remove_equal(edit.networks, group, rules, unknown));
    }
    Out out;
    out.return_ = true;
    if (!unknown.empty()) out.unknown_ip_permissions = permissions_of(edit.context, unknown);
    out.revoked_security_group_rules.emplace();
    for (const Rule& rule : taken)
      out.revoked_security_group_rules->push_back(revoked(group, rule));
    return out;
  });
}

constexpr Attribute<aws::SecurityGroupRule> kRuleAttributes[] = {
    {"group-id", [](const aws::SecurityGroupRule& rule) { return texts(rule.group_id); }},
    {"security-group-rule-id",
     [](const aws::SecurityGroupRule& rule) { return texts(rule.security_group_rule_id); }},
};

Outcome<aws::DescribeSecurityGroupRulesResult> describe_security_group_rules(
    const Networks& networks, const Context& context,
    const aws::DescribeSecurityGroupRulesRequest& in) {
  std::map<std::string, aws::SecurityGroupRule> by_id;
  for (const auto& [id, group] : networks.groups)
    for (const Rule& rule : group.rules) by_id.emplace(rule.id, to_shape(context, group, rule));
  std::vector<aws::SecurityGroupRule> wanted;
  for (const aws::SecurityGroupRule* rule : TRY(named(by_id, kRuleId, in.security_group_rule_ids)))
    wanted.push_back(*rule);
  TRY(keep_matching(in.filters, kRuleAttributes, wanted));
  aws::DescribeSecurityGroupRulesResult out;
  out.security_group_rules = TRY(page_of(
      in, std::move(wanted),
      [](const aws::SecurityGroupRule& rule) { return *rule.security_group_rule_id; },
      out.next_token));
  return out;
}

}  // namespace

std::vector<aws::IpPermission> shown_permissions(const Context& context, const SecurityGroup& group,
                                                 bool egress) {
  std::vector<Rule> rules;
  std::ranges::copy_if(group.rules, std::back_inserter(rules),
                       [&](const Rule& rule) { return rule.egress == egress; });
  return permissions_of(context, rules);
}

void add_security_group_rules(OperationTable& table, const Store& store) {
  add_authorize<aws::AuthorizeSecurityGroupIngress>(table, store, false);
  add_authorize<aws::AuthorizeSecurityGroupEgress>(table, store, true);
  add_revoke<aws::RevokeSecurityGroupIngress>(table, store, false);
  add_revoke<aws::RevokeSecurityGroupEgress>(table, store, true);
  add_read<aws::DescribeSecurityGroupRules>(table, store, describe_security_group_rules);
}

}  // namespace trainyard::api::ec2
