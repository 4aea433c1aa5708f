// Converts network resources to records of the ledger and back. Each resource is one record, named
// REGION/ID. A region whose default resources were written to the ledger also has a record.
//
// Threads: pure functions. Errors: invalid, naming the member.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "domain/record.hpp"
#include "ec2/networks.hpp"

namespace trainyard::api::ec2 {

// The kinds of these records; other records are ignored.
inline constexpr std::string_view kRegionRecord = "ec2_region", kVpcRecord = "ec2_vpc",
                                  kSubnetRecord = "ec2_subnet", kGroupRecord = "ec2_security_group",
                                  kGatewayRecord = "ec2_internet_gateway",
                                  kRouteTableRecord = "ec2_route_table";

// Returns whether the region's resources are in the ledger. Otherwise the region has
// default_networks().
bool has_region(const domain::Records& records, const std::string& region);

// Adds a record of the region's resources; ignores records of other kinds and regions.
Result<void> add_record(Networks& networks, const std::string& region, const domain::RecordKey& key,
                        const Json& document);

// Removes resources whose VPC is missing, since its record could not be read.
void drop_orphans(Networks& networks);

// Returns the writes that change `before` into `after`.
std::vector<domain::RecordWrite> difference(const std::string& region, const Networks& before,
                                            const Networks& after);
domain::RecordWrite region_record(const std::string& region);

}  // namespace trainyard::api::ec2
