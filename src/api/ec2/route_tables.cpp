// Implements the operations on route tables, their routes to internet gateways, and their subnets.
#include "ec2/common.hpp"
#include "ec2/ip_blocks.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr size_t kTablesOfVpcMax = 200;  // as AWS
constexpr size_t kRoutesMax = 50;        // of one table, as AWS
// The limit of a region: each table is a record of the ledger, which all users share.
constexpr size_t kTablesMax = 2'000;

aws::Route shown_route(const std::string& destination, const std::string& gateway, bool created,
                       bool active) {
  aws::Route out;
  out.destination_cidr_block = destination;
  out.gateway_id = gateway;
  out.origin = created ? "CreateRoute" : "CreateRouteTable";
  out.state = active ? "active" : "blackhole";
  return out;
}

aws::RouteTableAssociation shown_association(const RouteTable& table, const std::string& id,
                                             const std::string& subnet) {
  aws::RouteTableAssociation out;
  out.main = subnet.empty();
  out.route_table_association_id = id;
  out.route_table_id = table.id;
  if (!subnet.empty()) out.subnet_id = subnet;
  out.association_state.emplace().state = "associated";
  return out;
}

aws::RouteTable to_shape(const Networks& networks, const Context& context,
                         const RouteTable& table) {
  aws::RouteTable out;
  out.associations.emplace();
  if (!table.main_association.empty())
    out.associations->push_back(shown_association(table, table.main_association, ""));
  for (const SubnetAssociation& each : table.associations)
    out.associations->push_back(shown_association(table, each.id, each.subnet));
  out.propagating_vgws.emplace();
  out.route_table_id = table.id;
  out.routes = {shown_route(networks.vpcs.at(table.vpc).cidr, "local", false, true)};
  for (const Route& route : table.routes) {
    const auto gateway = networks.gateways.find(route.gateway);
    const bool active = gateway != networks.gateways.end() && gateway->second.vpc == table.vpc;
    out.routes->push_back(shown_route(route.destination, route.gateway, true, active));
  }
  out.tags = shown_tags<aws::Tag>(table.tags);
  out.vpc_id = table.vpc;
  out.owner_id = context.principal.account;
  return out;
}

Outcome<aws::CreateRouteTableResult> create_route_table(const Edit& edit,
                                                        const aws::CreateRouteTableRequest& in) {
  Networks& networks = edit.networks;
  const std::string vpc = TRY(find(networks.vpcs, kVpcId, *in.vpc_id))->id;
  const auto of_vpc = std::ranges::count_if(
      networks.route_tables, [&](const auto& each) { return each.second.vpc == vpc; });
  if (size_t(of_vpc) >= kTablesOfVpcMax || networks.route_tables.size() >= kTablesMax)
    return ec2_failure("RouteTableLimitExceeded",
                       "The maximum number of route tables has been reached.");
  RouteTable table;
  table.id = edit.make_id(kRouteTableId.prefix);
  table.vpc = vpc;
  table.tags = TRY(tags_for(kRouteTableId, in.tag_specifications));
  const RouteTable& made = networks.route_tables[table.id] = table;
  aws::CreateRouteTableResult out;
  out.route_table = to_shape(networks, edit.context, made);
  out.client_token = in.client_token;
  return out;
}

template <class Get>
Texts of_associations(const aws::RouteTable& table, const Get& get) {
  Texts found;
  for (const aws::RouteTableAssociation& each : *table.associations)
    for (std::string& text : get(each)) found.push_back(std::move(text));
  return found;
}
template <class Get>
Texts of_routes(const aws::RouteTable& table, const Get& get) {
  Texts found;
  for (const aws::Route& each : *table.routes)
    for (std::string& text : get(each)) found.push_back(std::move(text));
  return found;
}

using Table = aws::RouteTable;
using Association = aws::RouteTableAssociation;
constexpr Attribute<Table> kTableAttributes[] = {
    {"route-table-id", [](const Table& table) { return texts(table.route_table_id); }},
    {"vpc-id", [](const Table& table) { return texts(table.vpc_id); }},
    {"owner-id", [](const Table& table) { return texts(table.owner_id); }},
    {"association.main",
     [](const Table& table) {
       return of_associations(table, [](const Association& each) { return texts(each.main); });
     }},
    {"association.route-table-association-id",
     [](const Table& table) {
       return of_associations(
           table, [](const Association& each) { return texts(each.route_table_association_id); });
     }},
    {"association.route-table-id",
     [](const Table& table) {
       return of_associations(table,
                              [](const Association& each) { return texts(each.route_table_id); });
     }},
    {"association.subnet-id",
     [](const Table& table) {
       return of_associations(table, [](const Association& each) { return texts(each.subnet_id); });
     }},
    {"route.destination-cidr-block",
     [](const Table& table) {
       return of_routes(table,
                        [](const aws::Route& each) { return texts(each.destination_cidr_block); });
     }},
    {"route.gateway-id",
     [](const Table& table) {
       return of_routes(table, [](const aws::Route& each) { return texts(each.gateway_id); });
     }},
    {"route.origin",
     [](const Table& table) {
       return of_routes(table, [](const aws::Route& each) { return texts(each.origin); });
     }},
    {"route.state",
     [](const Table& table) {
       return of_routes(table, [](const aws::Route& each) { return texts(each.state); });
     }},
};

Outcome<aws::DescribeRouteTablesResult> describe_route_tables(
    const Networks& networks, const Context& context, const aws::DescribeRouteTablesRequest& in) {
  std::vector<Table> all;
  for (const RouteTable* table :
       TRY(named(networks.route_tables, kRouteTableId, in.route_table_ids)))
    all.push_back(to_shape(networks, context, *table));
  TRY(keep_matching(in.filters, kTableAttributes, all));
  aws::DescribeRouteTablesResult out;
  out.route_tables = TRY(page_of(
      in, std::move(all), [](const Table& table) { return *table.route_table_id; },
      out.next_token));
  return out;
}

Outcome<aws::Nothing> delete_route_table(const Edit& edit, const aws::DeleteRouteTableRequest& in) {
  auto& tables = edit.networks.route_tables;
  const RouteTable& table = *TRY(find(tables, kRouteTableId, *in.route_table_id));
  if (!table.main_association.empty() || !table.associations.empty())
    return ec2_failure("DependencyViolation",
                       "The routeTable '" + table.id + "' has dependencies and cannot be deleted.");
  tables.erase(std::string(table.id));
  return aws::Nothing{};
}

// Reads the destination of a request, in the form of the table.
Outcome<std::string> destination_of(const std::optional<std::string>& text) {
  if (!text) return absent_parameter("destinationCidrBlock");
  const auto block = parse_ipv4_block(*text);
  if (!block)
    return invalid_value(*text, "destinationCidrBlock", "This is not a valid CIDR block.");
  return to_string(*block);
}

Outcome<aws::CreateRouteResult> create_route(const Edit& edit, const aws::CreateRouteRequest& in) {
  Networks& networks = edit.networks;
  RouteTable& table = *TRY(find(networks.route_tables, kRouteTableId, *in.route_table_id));
  const std::string destination = TRY(destination_of(in.destination_cidr_block));
  if (!in.gateway_id)
    return ec2_failure("UnsupportedOperation",
                       "This server supports routes to internet gateways (GatewayId) only");
  const auto gateway = networks.gateways.find(*in.gateway_id);
  if (gateway == networks.gateways.end())
    return ec2_failure("InvalidGatewayID.NotFound",
                       "The gateway ID '" + shorten(*in.gateway_id, 256) + "' does not exist");
  if (gateway->second.vpc != table.vpc)
    return invalid_parameter_value("route table " + table.id + " and network gateway " +
                                   gateway->first + " belong to different networks");
  if (destination == networks.vpcs.at(table.vpc).cidr ||
      std::ranges::find(table.routes, destination, &Route::destination) != table.routes.end())
    return ec2_failure("RouteAlreadyExists",
                       "The route identified by " + destination + " already exists.");
  if (table.routes.size() >= kRoutesMax)
    return ec2_failure("RouteLimitExceeded",
                       "The maximum number of routes in " + table.id + " has been reached.");
  table.routes.push_back({destination, gateway->first});
  return aws::CreateRouteResult{.return_ = true};
}

Outcome<aws::Nothing> delete_route(const Edit& edit, const aws::DeleteRouteRequest& in) {
  RouteTable& table = *TRY(find(edit.networks.route_tables, kRouteTableId, *in.route_table_id));
  const std::string destination = TRY(destination_of(in.destination_cidr_block));
  if (std::erase_if(table.routes,
                    [&](const Route& each) { return each.destination == destination; }) == 0)
    return ec2_failure("InvalidRoute.NotFound", "no route with destination-cidr-block " +
                                                    destination + " in route table " + table.id);
  return aws::Nothing{};
}

Outcome<aws::AssociateRouteTableResult> associate_route_table(
    const Edit& edit, const aws::AssociateRouteTableRequest& in) {
  Networks& networks = edit.networks;
  if (in.gateway_id) return unsupported_parameter("GatewayId");
  if (!in.subnet_id) return absent_parameter("SubnetId");
  RouteTable& table = *TRY(find(networks.route_tables, kRouteTableId, *in.route_table_id));
  const Subnet& subnet = *TRY(find(networks.subnets, kSubnetId, *in.subnet_id));
  if (subnet.vpc != table.vpc)
    return invalid_parameter_value("Route table " + table.id + " and subnet " + subnet.id +
                                   " belong to different networks");
  for (const auto& [id, other] : networks.route_tables)
    if (std::ranges::find(other.associations, subnet.id, &SubnetAssociation::subnet) !=
        other.associations.end())
      return ec2_failure("Resource.AlreadyAssociated",
                         "the specified association for route table " + table.id +
                             " conflicts with an existing association");
  table.associations.push_back({edit.make_id("rtbassoc-"), subnet.id});
  aws::AssociateRouteTableResult out;
  out.association_id = table.associations.back().id;
  out.association_state.emplace().state = "associated";
  return out;
}

Outcome<aws::Nothing> disassociate_route_table(const Edit& edit,
                                               const aws::DisassociateRouteTableRequest& in) {
  for (auto& [id, table] : edit.networks.route_tables) {
    if (table.main_association == *in.association_id)
      return invalid_parameter_value("cannot disassociate the main route table association " +
                                     table.main_association);
    if (std::erase_if(table.associations, [&](const SubnetAssociation& each) {
          return each.id == *in.association_id;
        }) > 0)
      return aws::Nothing{};
  }
  return ec2_failure(
      "InvalidAssociationID.NotFound",
      "The association ID '" + shorten(*in.association_id, 256) + "' does not exist");
}

}  // namespace

void add_route_tables(OperationTable& table, const Store& store) {
  add_change<aws::CreateRouteTable>(table, store, create_route_table);
  add_read<aws::DescribeRouteTables>(table, store, describe_route_tables);
  add_change<aws::DeleteRouteTable>(table, store, delete_route_table);
  add_change<aws::CreateRoute>(table, store, create_route);
  add_change<aws::DeleteRoute>(table, store, delete_route);
  add_change<aws::AssociateRouteTable>(table, store, associate_route_table);
  add_change<aws::DisassociateRouteTable>(table, store, disassociate_route_table);
}

}  // namespace trainyard::api::ec2
