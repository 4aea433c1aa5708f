// `trainyard env`: prints shell exports with which unmodified AWS clients find the server. Clients older than
// AWS_ENDPOINT_URL (Debian 12's) find an endpoints.json on AWS_DATA_PATH, in which every service of every
// region has this server's address. For the SageMaker SDK there are a config that disables its telemetry, and
// a plugin of botocore, since the SDK calls STS at AWS's own host whatever the environment says, and looks
// for endpoints.json only in the home directory, where it would apply to every shell. Evaluating the text
// twice changes nothing; evaluating another server's replaces it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// The endpoints.json that makes old botocores call `host_and_port` for everything.
std::string endpoints_json(const std::string& host_and_port);

// The SageMaker SDK's config.
std::string sagemaker_yaml();

// A Python module for clients/python, with which clients made for a host of AWS call this server.
inline constexpr const char* kBotocorePlugin = "trainyard_botocore_plugin";
std::string botocore_plugin();

// Lines for any shell of POSIX: "export NAME='value'". `data_directory` holds tls/ca.pem and clients/.
std::string shell_exports(const std::string& data_directory, const ServerRecord& record);

}  // namespace trainyard::apps
