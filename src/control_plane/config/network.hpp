// Reads the tables about the network: [server], [network] and [regions.NAME].
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

// `directory` is the configuration file's, with a slash at its end.
Result<void> read_network(Table& root, const std::string& directory, Config& config);

// Checks that a listener's address is ADDRESS:PORT, with an IPv6 address in brackets.
Result<void> check_listen(const std::string& text);

// Returns the services that all jobs may reach, if the configuration gives their addresses: name
// servers, proxies, the package index and the object store.
std::vector<networks::EgressService> services_of(const Config& config);

}  // namespace trainyard::config
