#include "ec2/operations.hpp"

#include "ec2/common.hpp"

namespace trainyard::api::ec2 {

std::string arn_of(const Context& context, std::string_view type, const std::string& id) {
  return "arn:aws:ec2:" + context.region + ":" + context.principal.account + ":" +
         std::string(type) + "/" + id;
}

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  const auto store =
      std::make_shared<NetworkStore>(services.control, services.random, settings.account);
  add_vpcs(table, store);
  add_subnets(table, store);
  add_security_groups(table, store);
  add_security_group_rules(table, store);
  add_internet_gateways(table, store);
  add_route_tables(table, store);
  add_tag_operations(table, store);
  add_account(table, store, settings);
  add_instances(table, store);
  add_instance_types(table, store, settings);
}

}  // namespace trainyard::api::ec2
