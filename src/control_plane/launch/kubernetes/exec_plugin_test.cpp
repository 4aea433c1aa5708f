#include "launch/kubernetes/exec_plugin.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

constexpr const char* kPluginApi = "client.authentication.k8s.io/v1";
constexpr const char* kPluginCertificate =
    "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
constexpr const char* kPluginKey = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";

// An `exec` as `aws eks update-kubeconfig` writes it, with other members.
Json exec_with(const Json& more) {
  Json exec = {{"apiVersion", kPluginApi},
               {"command", "aws"},
               {"args", {"eks", "get-token", "--cluster-name", "lab"}},
               {"env", {{{"name", "AWS_PROFILE"}, {"value", "lab"}}}},
               {"interactiveMode", "IfAvailable"},
               {"provideClusterInfo", false}};
  exec.update(more);
  return exec;
}

Result<ExecPlugin> read_exec(const Json& exec) {
  return read_exec_plugin(exec, {{"server", "https://10.0.0.1:6443"}}, "/etc/trainyard");
}

TEST(ExecPlugin, HasACommandArgumentsAndVariables) {
  const auto plugin = read_exec(exec_with({{"installHint", "see https://aws.amazon.com/cli"}}));
  ASSERT_TRUE(plugin) << plugin.error().message;
  EXPECT_EQ(plugin->command, "aws");
  EXPECT_EQ(plugin->arguments,
            (std::vector<std::string>{"eks", "get-token", "--cluster-name", "lab"}));
  EXPECT_EQ(plugin->environment, (std::map<std::string, std::string>{{"AWS_PROFILE", "lab"}}));
  EXPECT_EQ(plugin->install_hint, "see https://aws.amazon.com/cli");
  EXPECT_EQ(parse_json(plugin->info).value(), (Json{{"apiVersion", kPluginApi},
                                                    {"kind", "ExecCredential"},
                                                    {"spec", {{"interactive", false}}}}));
}

TEST(ExecPlugin, NeedsNoArgumentsVariablesAndMode) {
  const Json exec = {{"apiVersion", "client.authentication.k8s.io/v1beta1"},
                     {"command", "plugin"},
                     {"args", nullptr},
                     {"env", nullptr}};
  const auto plugin = read_exec(exec);
  ASSERT_TRUE(plugin) << plugin.error().message;
  EXPECT_TRUE(plugin->arguments.empty());
  EXPECT_TRUE(plugin->environment.empty());
  EXPECT_EQ(plugin->api_version, "client.authentication.k8s.io/v1beta1");
}

TEST(ExecPlugin, IsRelativeToTheKubeconfigIfItsCommandHasASlash) {
  for (const auto& [command, expected] : {std::pair("plugin", "plugin"),
                                          {"/opt/plugin", "/opt/plugin"},
                                          {"./plugin", "/etc/trainyard/./plugin"},
                                          {"bin/plugin", "/etc/trainyard/bin/plugin"}}) {
    const auto plugin = read_exec(exec_with({{"command", command}}));
    ASSERT_TRUE(plugin) << plugin.error().message;
    EXPECT_EQ(plugin->command, expected);
  }
}

TEST(ExecPlugin, GetsTheClusterIfItWantsIt) {
  const auto plugin = read_exec(exec_with({{"provideClusterInfo", true}}));
  ASSERT_TRUE(plugin) << plugin.error().message;
  EXPECT_EQ(parse_json(plugin->info).value()["spec"]["cluster"]["server"], "https://10.0.0.1:6443");
  const Json large = {{"certificate-authority-data", std::string(kExecInfoBytesMax, 'A')}};
  const auto rejected =
      read_exec_plugin(exec_with({{"provideClusterInfo", true}}), large, "/etc/trainyard");
  ASSERT_FALSE(rejected);
  EXPECT_NE(rejected.error().message.find("at most 102400"), std::string::npos)
      << rejected.error().message;
  EXPECT_TRUE(read_exec_plugin(exec_with(Json::object()), large, "/etc/trainyard"));
}

TEST(ExecPlugin, IsRejectedWithTheMemberThatIsWrong) {
  const std::string nul("a\0b", 3);
  for (const auto& [more, expected] :
       {std::pair(Json{{"apiVersion", "client.authentication.k8s.io/v1alpha1"}}, "v1alpha1'"),
        {Json{{"apiVersion", nullptr}}, "apiVersion is ''"},
        {Json{{"apiVersion", 1}}, "apiVersion is not a string"},
        {Json{{"command", ""}}, "command is missing"},
        {Json{{"command", nul}}, "command contains a NUL"},
        {Json{{"args", "get-token"}}, "args is not a list"},
        {Json{{"args", {1}}}, "an argument in args is not a string"},
        {Json{{"args", {nullptr}}}, "an argument in args is not a string"},
        {Json{{"args", {nul}}}, "an argument in args contains a NUL"},
        {Json{{"env", Json::array({{{"name", 1}}})}}, "an entry of env"},
        {Json{{"env", Json::object({{"A", "1"}})}}, "env is not a list"},
        {Json{{"env", Json::array({{{"name", "A=B"}, {"value", "1"}}})}}, "'A=B'"},
        {Json{{"env", Json::array({{{"name", "A"}, {"value", 1}}})}}, "the variable 'A'"},
        {Json{{"env", Json::array({{{"value", "1"}}})}}, "variable name ''"},
        {Json{{"interactiveMode", "Always"}}, "has no terminal"},
        {Json{{"interactiveMode", "always"}}, "interactiveMode is 'always'"},
        {Json{{"provideClusterInfo", "true"}}, "provideClusterInfo"}}) {
    const auto plugin = read_exec(exec_with(more));
    ASSERT_FALSE(plugin) << expected;
    EXPECT_EQ(plugin.error().kind, Kind::invalid) << expected;
    EXPECT_NE(plugin.error().message.find(expected), std::string::npos) << plugin.error().message;
  }
  EXPECT_FALSE(read_exec(Json::array()));
}

Json credential_with(const Json& status) {
  return {{"kind", "ExecCredential"}, {"apiVersion", kPluginApi}, {"status", status}};
}

TEST(ExecCredential, HasATokenAndItsEnd) {
  const auto credential = read_exec_credential(
      dump(credential_with({{"token", "secret"}, {"expirationTimestamp", "2026-11-20T09:45:00Z"}})),
      kPluginApi);
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->token, "secret");
  EXPECT_EQ(credential->expires, *parse_iso8601("2026-11-20T09:45:00Z"));
  EXPECT_EQ(credential->certificate, "");
}

TEST(ExecCredential, HasACertificate) {
  const auto credential =
      read_exec_credential(dump(credential_with({{"clientCertificateData", kPluginCertificate},
                                                 {"clientKeyData", kPluginKey}})),
                           kPluginApi);
  ASSERT_TRUE(credential) << credential.error().message;
  EXPECT_EQ(credential->certificate, kPluginCertificate);
  EXPECT_EQ(credential->key, kPluginKey);
  EXPECT_EQ(credential->token, "");
  EXPECT_FALSE(credential->expires);
}

TEST(ExecCredential, IsRejectedWithoutAQuoteOfItsSecrets) {
  const Json token = {{"token", "secret"}};
  Json other_kind = credential_with(token), other_version = other_kind, none = other_kind;
  other_kind["kind"] = "Status";
  other_version["apiVersion"] = "client.authentication.k8s.io/v1beta1";
  none.erase("status");
  const auto with = [&](const Json& more) {
    Json status = token;
    status.update(more);
    return dump(credential_with(status));
  };
  for (const auto& [text, expected] :
       {std::pair(std::string(" \n"), "printed nothing"),
        {std::string("{\"token\": \"secret\""), "no JSON object"},
        {std::string("[\"secret\"]"), "no JSON object"},
        {dump(other_kind), "its kind is 'Status'"},
        {dump(other_version), "its apiVersion is 'client.authentication.k8s.io/v1beta1'"},
        {dump(none), "neither a token nor a client certificate"},
        {with({{"token", {"secret"}}}), "status.token is not a string"},
        {with({{"token", "secret two"}}), "status.token has blanks"},
        {with({{"token", "secret\r\nHost: x"}}), "status.token has blanks"},
        {with({{"token", std::string(kExecTokenBytesMax + 1, 's')}}), "at most 65536"},
        {with({{"clientKeyData", kPluginKey}}), "both clientCertificateData and clientKeyData"},
        {with({{"clientCertificateData", "secret"}, {"clientKeyData", kPluginKey}}),
         "clientCertificateData is not a certificate"},
        {with({{"clientCertificateData", kPluginCertificate}, {"clientKeyData", "secret"}}),
         "clientKeyData is not a private key"},
        {with({{"expirationTimestamp", "soon"}}), "status.expirationTimestamp is 'soon'"},
        {std::string(kExecOutputBytesMax + 1, ' '), "more than 262144 bytes"}}) {
    const auto credential = read_exec_credential(text, kPluginApi);
    ASSERT_FALSE(credential) << expected;
    EXPECT_EQ(credential.error().kind, Kind::corrupt) << expected;
    EXPECT_NE(credential.error().message.find(expected), std::string::npos)
        << credential.error().message;
    EXPECT_EQ(credential.error().message.find("secret"), std::string::npos)
        << credential.error().message;
  }
}

}  // namespace
}  // namespace trainyard::launch
