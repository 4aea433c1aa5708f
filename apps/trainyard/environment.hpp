// Implements `trainyard env`: prints shell exports with which unmodified AWS clients find the
// server.
//
// Clients that ignore AWS_ENDPOINT_URL (Debian 12's) read an endpoints.json on AWS_DATA_PATH
// (contract/clients.hpp). For the SageMaker SDK there are a config that disables its telemetry, and
// a plugin of botocore: the SDK calls STS at AWS's own host in any environment, and reads
// endpoints.json only from the home directory, where it would apply to every shell. Evaluating the
// text twice has no further effect; evaluating another server's text replaces the variables.
#pragma once

#include <string>

#include "base/result.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// Formats the SageMaker SDK's config.
std::string sagemaker_yaml();

// A Python module for clients/python that redirects clients with an explicit AWS host name to this
// server.
inline constexpr const char* kBotocorePlugin = "trainyard_botocore_plugin";
std::string botocore_plugin();

// Formats lines for any POSIX shell: "export NAME='value'". `data_directory` contains tls/ca.pem
// and clients/.
std::string shell_exports(const std::string& data_directory, const ServerRecord& record);

// Formats a script for a user that cannot read the data directory: another Unix user, or a user on
// another machine. The script writes the clients' files below the home directory and exports the
// same variables. `record` has the user's key and the endpoint that the user can reach; `authority`
// is the text of tls/ca.pem. The script contains the secret of the key.
std::string client_setup_script(const std::string& user, const ServerRecord& record,
                                const std::string& authority);

}  // namespace trainyard::apps
