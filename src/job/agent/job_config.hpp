// Converts an order into the configuration of the job contract. Pure.
#pragma once

#include "containers/container.hpp"
#include "contract/contract.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

contract::HostConfig host_config(const wire::Order& order);

// Returns the container's environment. Later sources override earlier ones: the contract, the
// image, the order, `own`, the egress proxies, the request. The requests of AWS's SDKs to this
// platform bypass the proxies.
std::map<std::string, std::string> container_environment(
    const wire::Order& order, const contract::EndpointConfig& endpoint,
    const std::map<std::string, std::string>& image_environment,
    const std::map<std::string, std::string>& own = {});

// Returns "1.0 GiB memory limit (1/2 of ml.m5.large)".
std::string memory_limit_text(const wire::Order& order);

// Returns the content of /etc/hosts.
std::string hosts_file(std::string_view host_table);
// Returns the address of a name in a host table; "" if it is missing.
std::string address_in(std::string_view host_table, std::string_view name);
// Returns the content of /etc/resolv.conf: from the config or, without one, the machine's own name
// servers, as far as they can be reached from another network namespace. `through`: a name server
// that forwards to the machine's; "" = none.
std::string resolver_file(const domain::EgressSettings& egress_settings,
                          std::string_view of_machine, std::string_view through = {});

}  // namespace trainyard::agent
