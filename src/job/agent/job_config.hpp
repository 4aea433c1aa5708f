// What an order says, in the contract's words. Pure.
#pragma once

#include "containers/container.hpp"
#include "contract/contract.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

contract::HostConfig host_config(const wire::Order& order);

// The container's environment, weakest first: the contract's, the image's own, the order's, `own`, ways to the outside,
// the request's. AWS's SDKs inside must not send what is for us through a proxy.
std::map<std::string, std::string> container_environment(
    const wire::Order& order, const contract::EndpointConfig& endpoint,
    const std::map<std::string, std::string>& image_environment,
    const std::map<std::string, std::string>& own = {});

// "1.0 GiB, 1/2 of ml.m5.large": for the words of a memory limit.
std::string share_in_words(const wire::Order& order);

// /etc/hosts from the host table, and /etc/resolv.conf from the config or, without one, from the machine's
// own, as far as it names servers that can be reached from another network namespace.
std::string hosts_file(std::string_view host_table);
// The address of a name in a host table; "" where it is not there.
std::string address_in(std::string_view host_table, std::string_view name);
// `through`: a name server that asks the machine's in its place, whatever these are; "" = there is none.
std::string resolver_file(const domain::Outward& outward, std::string_view of_machine,
                          std::string_view through = {});

}  // namespace trainyard::agent
