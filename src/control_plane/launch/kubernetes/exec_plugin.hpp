// Reads an exec plugin from a kubeconfig, and the credentials that the plugin prints.
//
// An exec plugin is a program that a kubeconfig names in users[].user.exec, as those of EKS, GKE
// and AKS do. It prints an ExecCredential in JSON, with a bearer token or a client certificate. The
// API versions client.authentication.k8s.io/v1 and v1beta1 are supported.
//
// Threads: pure. Errors: invalid, in a kubeconfig (the member, the rejected value and the remedy);
// corrupt, in a plugin's output. The latter quote no credentials, since they are logged.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::launch {

// The size limit of a plugin's output: a token and a certificate chain have a few KiB.
inline constexpr size_t kExecOutputBytesMax = 256 << 10;
// The size limit of a token, which is a header of each request.
inline constexpr size_t kExecTokenBytesMax = 64 << 10;
// The size limit of the cluster's description for a plugin. It is passed in an environment
// variable, and Linux limits one to 128 KiB.
inline constexpr size_t kExecInfoBytesMax = 100 << 10;

struct ExecPlugin {
  std::string api_version;  // the version of its output, "client.authentication.k8s.io/v1"
  std::string command;      // a path, or a name that is searched on PATH
  std::vector<std::string> arguments;              // without the command
  std::map<std::string, std::string> environment;  // added to the server's
  std::string install_hint;                        // for a missing program; "": unknown
  std::string info;                                // the value of KUBERNETES_EXEC_INFO
};

struct ExecCredential {
  std::string token;             // a bearer token; "": none
  std::string certificate, key;  // PEM texts; "": none
  std::optional<Instant> expires;
};

// Reads a kubeconfig's `exec`. A command with '/' that is not absolute is below `directory`.
// `cluster` is passed to plugins that need it, as the `cluster` of KUBERNETES_EXEC_INFO.
Result<ExecPlugin> read_exec_plugin(const Json& exec, const Json& cluster,
                                    const std::string& directory);

// Reads an ExecCredential of the API version that the kubeconfig names.
Result<ExecCredential> read_exec_credential(std::string_view text, const std::string& api_version);

}  // namespace trainyard::launch
