// AddressForm and SubnetForm convert addresses and subnets to and from JSON: "10.201.0.2",
// "10.201.0.0/28".
//
// Threads: plain values. Errors: invalid.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "networks/subnet.hpp"

namespace trainyard::launch {

struct AddressForm {
  using Value = networks::Address;
  static Json write(const Value& address) { return networks::to_text(address); }
  static Result<void> read_into(const Json& json, Value& address) {
    if (!json.is_string()) return invalid("an address must be a string");
    address = TRY(networks::parse_address(json.get<std::string>()));
    return {};
  }
};

struct SubnetForm {
  using Value = networks::Subnet;
  static Json write(const Value& subnet) { return subnet.text(); }
  static Result<void> read_into(const Json& json, Value& subnet) {
    if (!json.is_string()) return invalid("a subnet must be a string");
    subnet = TRY(networks::parse_subnet(json.get<std::string>()));
    return {};
  }
};

}  // namespace trainyard::launch
