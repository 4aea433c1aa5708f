#include "launch/kubernetes/kubeconfig.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "launch/kubernetes/json_members.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kConvert =
    "`kubectl config view --raw --minify -o json` writes one that can be read";

// The extension of a kubeconfig's cluster with settings for exec plugins.
constexpr const char* kExecExtension = "client.authentication.k8s.io/exec";

// Returns the object `kind` of the list's entry with that name.
Result<const Json*> named(const Json& config, const char* list, const char* kind,
                          const std::string& name) {
  const auto entries = config.find(list);
  if (entries != config.end() && entries->is_array())
    for (const Json& entry : *entries) {
      if (!entry.is_object() || json_text(entry, "name") != name) continue;
      const auto found = entry.find(kind);
      if (found != entry.end() && found->is_object()) return &*found;
    }
  return invalid("the kubeconfig has no " + std::string(kind) + " '" + shorten(name, 80) + "' in " +
                 list);
}

// Returns the PEM text of a member, which is in base64 or in a file.
Result<std::string> pem_of(const Json& object, const std::string& member,
                           const std::string& directory, const ReadFile& read_file) {
  const std::string data = json_text(object, (member + "-data").c_str());
  if (!data.empty()) return from_base64(data).in(member + "-data of the kubeconfig");
  std::string path = json_text(object, member.c_str());
  if (path.empty()) return std::string();
  if (!path.starts_with('/')) path = directory + "/" + path;
  return read_file(path).in(member + " of the kubeconfig");
}

Result<void> read_cluster(const Json& cluster, const std::string& directory,
                          const ReadFile& read_file, KubernetesAccess& access) {
  access.server = json_text(cluster, "server");
  if (!access.server.starts_with("https://") || access.server.size() > 2048)
    return invalid("the kubeconfig's server is '" + shorten(access.server, 80) +
                   "': it must be a URL, https://");
  while (access.server.ends_with('/')) access.server.pop_back();
  if (const auto insecure = cluster.find("insecure-skip-tls-verify");
      insecure != cluster.end() && *insecure != Json(false))
    return invalid(
        "the kubeconfig has insecure-skip-tls-verify: name the server's authority in "
        "certificate-authority instead");
  for (const char* unknown : {"proxy-url", "tls-server-name"})
    if (!json_text(cluster, unknown).empty())
      return invalid(std::string("the kubeconfig has ") + unknown + ", which is not supported");
  access.identity.ca = TRY(pem_of(cluster, "certificate-authority", directory, read_file));
  return {};
}

// Returns the cluster as an exec plugin gets it.
Json cluster_for_plugin(const Json& cluster, const KubernetesAccess& access) {
  Json out = {{"server", json_text(cluster, "server")}};
  if (!access.identity.ca.empty())
    out["certificate-authority-data"] = to_base64(access.identity.ca);
  for (const Json& extension : json_list(cluster, "extensions"))
    if (json_text(extension, "name") == kExecExtension)
      out["config"] = json_member(extension, "extension");
  return out;
}

// Requires: the access has the cluster's members.
Result<void> read_user(const Json& user, const Json& cluster, const std::string& directory,
                       const ReadFile& read_file, KubernetesAccess& access) {
  access.token = json_text(user, "token");
  access.token_file = json_text(user, "tokenFile");
  access.identity.certificate = TRY(pem_of(user, "client-certificate", directory, read_file));
  access.identity.key = TRY(pem_of(user, "client-key", directory, read_file));
  if (access.identity.certificate.empty() != access.identity.key.empty())
    return invalid("the kubeconfig's user needs both a client-certificate and a client-key");
  const bool fixed =
      !access.token.empty() || !access.token_file.empty() || !access.identity.certificate.empty();
  if (const Json& exec = json_member(user, "exec"); !exec.is_null()) {
    if (fixed)
      return invalid(
          "the kubeconfig's user has exec and also a token or a client-certificate: remove one of "
          "them");
    access.plugin = TRY(read_exec_plugin(exec, cluster_for_plugin(cluster, access), directory));
  } else if (!fixed) {
    return invalid(
        "the kubeconfig's user has no token, client-certificate or exec; auth providers and "
        "passwords are not supported: create a service account for this server");
  }
  return {};
}

}  // namespace

Result<KubernetesAccess> read_kubeconfig(std::string_view text, const std::string& context,
                                         const std::string& directory, const ReadFile& read_file) {
  if (text.size() > kKubeconfigBytesMax)
    return invalid("the kubeconfig has more than " + std::to_string(kKubeconfigBytesMax) +
                   " bytes");
  if (!trim(text).starts_with('{'))
    return invalid(std::string("the kubeconfig is not JSON, and YAML is not read: ") + kConvert);
  const Json config = TRY(parse_json(text).in("reading the kubeconfig"));
  const std::string name = context.empty() ? json_text(config, "current-context") : context;
  const Json& chosen = *TRY(named(config, "contexts", "context", name));
  KubernetesAccess access;
  access.name_space = json_text(chosen, "namespace");
  const Json& cluster = *TRY(named(config, "clusters", "cluster", json_text(chosen, "cluster")));
  TRY(read_cluster(cluster, directory, read_file, access));
  TRY(read_user(*TRY(named(config, "users", "user", json_text(chosen, "user"))), cluster, directory,
                read_file, access));
  return access;
}

Result<KubernetesAccess> service_account_access(const std::string& directory,
                                                const std::string& host, const std::string& port,
                                                const ReadFile& read_file) {
  if (host.empty() || port.empty())
    return invalid(
        "kubernetes.kubeconfig is not set, and this server does not run in a pod: "
        "KUBERNETES_SERVICE_HOST is not set");
  KubernetesAccess access;
  const bool v6 = host.find(':') != std::string::npos;
  access.server = "https://" + (v6 ? "[" + host + "]" : host) + ":" + port;
  access.token_file = directory + "/token";
  access.identity.ca = TRY(read_file(directory + "/ca.crt").in("the service account"));
  const auto name_space = read_file(directory + "/namespace");
  if (name_space) access.name_space = std::string(trim(*name_space));
  return access;
}

}  // namespace trainyard::launch
