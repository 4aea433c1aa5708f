// Lists AWS's names of EC2 instance types ("m5.large"), from EC2's model. EC2's shapes have no such
// constraint, since this server offers only some of the types (domain/instance_type.hpp).
//
// Threads: a constant.
#pragma once

#include <span>
#include <string_view>

namespace trainyard::api::shapes::ec2 {

std::span<const std::string_view> instance_type_values();

}  // namespace trainyard::api::shapes::ec2
