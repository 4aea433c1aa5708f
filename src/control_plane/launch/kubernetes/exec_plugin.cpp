#include "launch/kubernetes/exec_plugin.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "launch/kubernetes/json_members.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kExecApi = "client.authentication.k8s.io/v1";
constexpr const char* kExecApiBeta = "client.authentication.k8s.io/v1beta1";
constexpr const char* kCredentialKind = "ExecCredential";
// A message shows this much of a rejected value.
constexpr size_t kQuotedBytesMax = 80;

std::string in_quotes(std::string_view text) {
  return "'" + to_utf8(shorten(text, kQuotedBytesMax)) + "'";
}

// Texts become arguments and variables of a program, so they may not have a NUL.
Result<std::string> exec_text(const Json& value, const std::string& name) {
  if (!value.is_string()) return invalid(name + " is not a string");
  std::string text = value.get<std::string>();
  if (text.find('\0') != std::string::npos) return invalid(name + " contains a NUL character");
  return text;
}

// Returns the text of a member that may be missing or null; "" then.
Result<std::string> exec_member(const Json& object, const char* name) {
  const Json& found = json_member(object, name);
  if (found.is_null()) return std::string();
  return exec_text(found, name);
}

// Returns a member that may be missing or null; nullptr then. Errors: invalid, unless it is a list.
Result<const Json::array_t*> exec_list(const Json& object, const char* name) {
  const Json& found = json_member(object, name);
  if (found.is_null()) return static_cast<const Json::array_t*>(nullptr);
  if (!found.is_array()) return invalid(std::string(name) + " is not a list");
  return found.get_ptr<const Json::array_t*>();
}

Result<std::string> exec_command(const Json& exec, const std::string& directory) {
  std::string command = TRY(exec_member(exec, "command"));
  if (command.empty()) return invalid("command is missing: it names the plugin's program");
  // As kubectl does: only names without '/' are searched on PATH.
  if (command.find('/') != std::string::npos && !command.starts_with('/'))
    command = directory + "/" + command;
  return command;
}

Result<std::map<std::string, std::string>> exec_environment(const Json& exec) {
  std::map<std::string, std::string> environment;
  const Json::array_t* entries = TRY(exec_list(exec, "env"));
  if (entries == nullptr) return environment;
  for (const Json& entry : *entries) {
    const std::string name = TRY(exec_member(entry, "name").in("an entry of env"));
    if (name.empty() || name.find('=') != std::string::npos)
      return invalid("env has the variable name " + in_quotes(name) +
                     ": it must not be empty or contain '='");
    environment[name] = TRY(exec_member(entry, "value").in("the variable " + in_quotes(name)));
  }
  return environment;
}

Result<void> check_interactive_mode(const Json& exec) {
  const std::string mode = TRY(exec_member(exec, "interactiveMode"));
  if (mode.empty() || mode == "Never" || mode == "IfAvailable") return {};
  if (mode == "Always")
    return invalid(
        "interactiveMode is 'Always', and the server has no terminal: use a plugin that works "
        "without one, or a token of a service account");
  return invalid("interactiveMode is " + in_quotes(mode) + ": it must be Never or IfAvailable");
}

Result<std::string> exec_info(const Json& exec, const std::string& api_version,
                              const Json& cluster) {
  Json spec = {{"interactive", false}};
  const Json& wanted = json_member(exec, "provideClusterInfo");
  if (!wanted.is_null() && !wanted.is_boolean())
    return invalid("provideClusterInfo is neither true nor false");
  if (wanted == Json(true)) spec["cluster"] = cluster;
  std::string info =
      dump(Json{{"kind", kCredentialKind}, {"apiVersion", api_version}, {"spec", spec}});
  if (info.size() > kExecInfoBytesMax)
    return invalid("provideClusterInfo is set, and the cluster's authorities and settings have " +
                   std::to_string(info.size()) + " bytes: a plugin gets at most " +
                   std::to_string(kExecInfoBytesMax));
  return info;
}

Result<ExecPlugin> read_members(const Json& exec, const Json& cluster,
                                const std::string& directory) {
  ExecPlugin plugin;
  plugin.api_version = TRY(exec_member(exec, "apiVersion"));
  if (plugin.api_version != kExecApi && plugin.api_version != kExecApiBeta)
    return invalid("apiVersion is " + in_quotes(plugin.api_version) + ": it must be " + kExecApi +
                   " or " + kExecApiBeta);
  plugin.command = TRY(exec_command(exec, directory));
  if (const Json::array_t* arguments = TRY(exec_list(exec, "args")))
    for (const Json& argument : *arguments)
      plugin.arguments.push_back(TRY(exec_text(argument, "an argument in args")));
  plugin.environment = TRY(exec_environment(exec));
  plugin.install_hint = TRY(exec_member(exec, "installHint"));
  TRY(check_interactive_mode(exec));
  plugin.info = TRY(exec_info(exec, plugin.api_version, cluster));
  return plugin;
}

// -- the plugin's output
// ---------------------------------------------------------------------------

// Returns the text of a member of `status`. Its errors do not quote the value.
Result<std::string> credential_text(const Json& status, const char* name) {
  const Json& found = json_member(status, name);
  if (found.is_null()) return std::string();
  if (!found.is_string()) return corrupt(std::string("status.") + name + " is not a string");
  return found.get<std::string>();
}

Result<void> check_exec_token(std::string_view token) {
  if (token.size() > kExecTokenBytesMax)
    return corrupt("status.token has " + std::to_string(token.size()) + " bytes: at most " +
                   std::to_string(kExecTokenBytesMax) + " are accepted");
  if (!std::ranges::all_of(token, [](char c) { return c > ' ' && c < 127; }))
    return corrupt("status.token has blanks or characters that are not ASCII");
  return {};
}

Result<void> check_exec_certificate(const ExecCredential& credential) {
  if (credential.certificate.empty() != credential.key.empty())
    return corrupt("status must have both clientCertificateData and clientKeyData");
  if (credential.certificate.empty()) return {};
  if (credential.certificate.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
    return corrupt("status.clientCertificateData is not a certificate in PEM");
  if (credential.key.find("PRIVATE KEY-----") == std::string::npos)
    return corrupt("status.clientKeyData is not a private key in PEM");
  return {};
}

Result<void> check_exec_header(const Json& json, const std::string& api_version) {
  if (json_text(json, "kind") != kCredentialKind)
    return corrupt("its kind is " + in_quotes(json_text(json, "kind")) + " instead of " +
                   kCredentialKind);
  if (json_text(json, "apiVersion") != api_version)
    return corrupt("its apiVersion is " + in_quotes(json_text(json, "apiVersion")) +
                   ", and the kubeconfig says " + api_version);
  return {};
}

}  // namespace

Result<ExecPlugin> read_exec_plugin(const Json& exec, const Json& cluster,
                                    const std::string& directory) {
  if (!exec.is_object()) return invalid("exec of the kubeconfig's user is not an object");
  return read_members(exec, cluster, directory).in("exec of the kubeconfig's user");
}

Result<ExecCredential> read_exec_credential(std::string_view text, const std::string& api_version) {
  if (text.size() > kExecOutputBytesMax)
    return corrupt("it printed more than " + std::to_string(kExecOutputBytesMax) + " bytes");
  const auto json = parse_json(text);
  // The parser's message quotes the text, which may have a token.
  if (!json || !json->is_object())
    return corrupt(trim(text).empty() ? "it printed nothing on its standard output"
                                      : "it printed no JSON object of the kind ExecCredential");
  TRY(check_exec_header(*json, api_version));
  const Json& status = json_member(*json, "status");
  ExecCredential credential;
  credential.token = TRY(credential_text(status, "token"));
  credential.certificate = TRY(credential_text(status, "clientCertificateData"));
  credential.key = TRY(credential_text(status, "clientKeyData"));
  TRY(check_exec_token(credential.token));
  TRY(check_exec_certificate(credential));
  if (credential.token.empty() && credential.certificate.empty())
    return corrupt("its status has neither a token nor a client certificate");
  const std::string expires = TRY(credential_text(status, "expirationTimestamp"));
  if (expires.empty()) return credential;
  const auto instant = parse_iso8601(expires);
  if (!instant)
    return corrupt("status.expirationTimestamp is " + in_quotes(expires) +
                   ": it must be a time as 2026-01-31T09:45:00Z");
  credential.expires = *instant;
  return credential;
}

}  // namespace trainyard::launch
