// Makes EC2's errors, with AWS's codes and texts.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/text.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api::ec2 {

// IdForm describes the ids of one type of resource, and the codes of errors about them.
struct IdForm {
  std::string_view prefix;         // "subnet-"
  std::string_view resource_type;  // of tags: "subnet"
  std::string_view not_found, malformed;
  std::string_view resource;  // "subnet ID"
};

inline constexpr IdForm kVpcId{"vpc-", "vpc", "InvalidVpcID.NotFound", "InvalidVpcID.Malformed",
                               "vpc ID"};
inline constexpr IdForm kSubnetId{"subnet-", "subnet", "InvalidSubnetID.NotFound",
                                  "InvalidSubnetID.Malformed", "subnet ID"};
inline constexpr IdForm kGroupId{"sg-", "security-group", "InvalidGroup.NotFound",
                                 "InvalidGroupId.Malformed", "security group"};
inline constexpr IdForm kRuleId{"sgr-", "security-group-rule",
                                "InvalidSecurityGroupRuleId.NotFound",
                                "InvalidSecurityGroupRuleId.Malformed", "security group rule ID"};
inline constexpr IdForm kGatewayId{"igw-", "internet-gateway", "InvalidInternetGatewayID.NotFound",
                                   "InvalidInternetGatewayID.Malformed", "internetGateway ID"};
inline constexpr IdForm kRouteTableId{"rtb-", "route-table", "InvalidRouteTableID.NotFound",
                                      "InvalidRouteTableID.Malformed", "routeTable ID"};

// `code`: "InvalidVpc.Range".
inline Failure ec2_failure(std::string_view code, std::string message) {
  return {400, std::string(code), std::move(message)};
}
// "Value (10.0.0.0) for parameter cidrBlock is invalid. This is not a valid CIDR block."
inline Failure invalid_value(std::string_view value, std::string_view parameter,
                             std::string_view why) {
  return invalid_parameter_value("Value (" + shorten(value, 256) + ") for parameter " +
                                 std::string(parameter) + " is invalid. " + std::string(why));
}
inline Failure absent_parameter(std::string_view parameter) {
  return missing_parameter("The request must contain the parameter " + std::string(parameter));
}
inline Failure unsupported_parameter(std::string_view parameter) {
  return ec2_failure("UnsupportedOperation",
                     "The parameter " + std::string(parameter) + " is not offered by this server");
}
// Makes the failure for a malformed id, or for the id of a resource that does not exist.
Failure invalid_id(const IdForm& form, std::string_view id);

}  // namespace trainyard::api::ec2
