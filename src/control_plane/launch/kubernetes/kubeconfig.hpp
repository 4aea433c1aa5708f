// Reads the address and credentials for an API server: from a kubeconfig in JSON, or from the
// service account of the pod in which this server runs.
//
// A kubeconfig in YAML is rejected, with the command that converts it. So are auth providers,
// passwords, proxies, and settings that skip the check of the server's certificate.
//
// Threads: pure, except for reading files. Errors: invalid (with the member and the remedy), and
// those of files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "launch/kubernetes/exec_plugin.hpp"
#include "launch/rest_request.hpp"

namespace trainyard::launch {

// The size limit of a kubeconfig, and of a certificate.
inline constexpr size_t kKubeconfigBytesMax = 1 << 20;

struct KubernetesAccess {
  std::string server;  // "https://10.0.0.1:6443", without a path's last '/'
  RestIdentity identity;
  std::string token;       // a bearer token; "": none
  std::string token_file;  // read again for each request, since it may be renewed; "": none
  std::optional<ExecPlugin> plugin = {};  // prints token or client certificate; then these are ""
  std::string name_space;                 // the context's, or the service account's; "": "default"
};

// Returns the content of the file.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

// Reads a context; "": the current one. Relative paths in the kubeconfig are below `directory`.
Result<KubernetesAccess> read_kubeconfig(std::string_view text, const std::string& context,
                                         const std::string& directory, const ReadFile& read_file);

// `directory` is /var/run/secrets/kubernetes.io/serviceaccount. `host` and `port` are the values of
// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
Result<KubernetesAccess> service_account_access(const std::string& directory,
                                                const std::string& host, const std::string& port,
                                                const ReadFile& read_file);

}  // namespace trainyard::launch
