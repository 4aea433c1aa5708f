// `trainyard env`: shell exports with which unmodified AWS clients find the server. Clients older than AWS_ENDPOINT_URL
// (Debian 12's) and the STS hosts that SDKs hard-code are reached through an endpoints.json on AWS_DATA_PATH, in which
// every service of every region lives at this server's address.
#pragma once

#include <string>

#include "base/result.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// The endpoints.json that makes old botocores ask `host_and_port` for everything.
std::string endpoints_json(const std::string& host_and_port);

// "export NAME='value'" lines. `data_directory` holds tls/ca.pem and clients/endpoints.json.
std::string shell_exports(const std::string& data_directory, const ServerRecord& record);

}  // namespace trainyard::apps
