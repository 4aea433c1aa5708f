#include "launch/kubernetes/kubeconfig.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::launch {
namespace {

const std::map<std::string, std::string> kFiles = {
    {"/etc/trainyard/ca.crt", "CA"},      {"/keys/client.crt", "CERTIFICATE"},
    {"/keys/client.key", "KEY"},          {"/account/ca.crt", "CLUSTER CA"},
    {"/account/namespace", "training\n"},
};

Result<std::string> file_content(const std::string& path) {
  const auto found = kFiles.find(path);
  if (found == kFiles.end()) return not_found(path);
  return found->second;
}

Json kubeconfig(const Json& user, const Json& more_of_cluster = Json::object()) {
  Json cluster = {{"server", "https://10.0.0.1:6443/"}, {"certificate-authority", "ca.crt"}};
  cluster.update(more_of_cluster);
  return {{"current-context", "lab"},
          {"contexts",
           {{{"name", "lab"},
             {"context", {{"cluster", "c"}, {"user", "u"}, {"namespace", "training"}}}},
            {{"name", "other"}, {"context", {{"cluster", "none"}, {"user", "u"}}}}}},
          {"clusters", {{{"name", "c"}, {"cluster", cluster}}}},
          {"users", {{{"name", "u"}, {"user", user}}}}};
}

Result<KubernetesAccess> read(const Json& config, const std::string& context = "") {
  return read_kubeconfig(dump(config), context, "/etc/trainyard", file_content);
}

std::string message_of(const Result<KubernetesAccess>& access) {
  return access ? "" : access.error().message;
}

TEST(Kubeconfig, HasAServerAndAToken) {
  const auto access = read(kubeconfig({{"token", "secret"}}));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://10.0.0.1:6443");
  EXPECT_EQ(access->identity.ca, "CA");
  EXPECT_EQ(access->token, "secret");
  EXPECT_EQ(access->name_space, "training");
}

TEST(Kubeconfig, HasCertificatesAsDataOrFiles) {
  const Json by_file = {{"client-certificate", "/keys/client.crt"},
                        {"client-key", "/keys/client.key"}};
  const Json by_data = {{"client-certificate-data", to_base64("CERTIFICATE")},
                        {"client-key-data", to_base64("KEY")}};
  for (const Json& user : {by_file, by_data}) {
    const auto access = read(kubeconfig(user));
    ASSERT_TRUE(access) << access.error().message;
    EXPECT_EQ(access->identity.certificate, "CERTIFICATE");
    EXPECT_EQ(access->identity.key, "KEY");
  }
}

TEST(Kubeconfig, HasAnExecPlugin) {
  const Json exec = {{"apiVersion", "client.authentication.k8s.io/v1"},
                     {"command", "bin/plugin"},
                     {"provideClusterInfo", true}};
  const Json extensions = {
      {{"name", "other"}, {"extension", {{"audience", "none"}}}},
      {{"name", "client.authentication.k8s.io/exec"}, {"extension", {{"audience", "lab"}}}}};
  const auto access = read(kubeconfig({{"exec", exec}}, {{"extensions", extensions}}));
  ASSERT_TRUE(access) << access.error().message;
  ASSERT_TRUE(access->plugin);
  EXPECT_EQ(access->plugin->command, "/etc/trainyard/bin/plugin");
  const Json cluster = {{"server", "https://10.0.0.1:6443/"},
                        {"certificate-authority-data", to_base64("CA")},
                        {"config", {{"audience", "lab"}}}};
  EXPECT_EQ(parse_json(access->plugin->info).value()["spec"]["cluster"], cluster);
  EXPECT_FALSE(read(kubeconfig({{"token", "secret"}, {"exec", nullptr}}))->plugin);
}

TEST(Kubeconfig, RejectsUnsupportedSettingsWithAnExplanation) {
  EXPECT_NE(message_of(read_kubeconfig("apiVersion: v1\n", "", "/", file_content))
                .find("kubectl config view --raw --minify -o json"),
            std::string::npos);
  const Json token = {{"token", "secret"}};
  for (const auto& [config, expected] :
       {std::pair(kubeconfig(Json::object()), "create a service account"),
        {kubeconfig({{"exec", {{"command", "aws"}}}}), "exec of the kubeconfig's user: apiVersion"},
        {kubeconfig({{"exec", "aws"}}), "exec of the kubeconfig's user is not an object"},
        {kubeconfig({{"exec", {{"command", "aws"}}}, {"token", "secret"}}), "remove one of them"},
        {kubeconfig(token, {{"insecure-skip-tls-verify", true}}), "certificate-authority"},
        {kubeconfig(token, {{"proxy-url", "http://proxy"}}), "proxy-url"},
        {kubeconfig(token, {{"server", "http://10.0.0.1"}}), "https://"},
        {kubeconfig(token, {{"certificate-authority", "missing"}}), "certificate-authority"},
        {kubeconfig(token, {{"certificate-authority-data", "%"}}), "certificate-authority-data"},
        {kubeconfig({{"client-certificate", "/keys/client.crt"}}), "client-key"}}) {
    const std::string message = message_of(read(config));
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

TEST(Kubeconfig, RejectsIncompleteContexts) {
  const Json config = kubeconfig({{"token", "secret"}});
  EXPECT_NE(message_of(read(config, "none")).find("context 'none'"), std::string::npos);
  EXPECT_NE(message_of(read(config, "other")).find("cluster 'none'"), std::string::npos);
  EXPECT_FALSE(read(Json::array()));
  EXPECT_FALSE(read_kubeconfig(std::string(kKubeconfigBytesMax + 1, ' '), "", "/", file_content));
}

TEST(ServiceAccount, ComesFromThePod) {
  const auto access = service_account_access("/account", "10.96.0.1", "443", file_content);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://10.96.0.1:443");
  EXPECT_EQ(access->token_file, "/account/token");
  EXPECT_EQ(access->identity.ca, "CLUSTER CA");
  EXPECT_EQ(access->name_space, "training");
  EXPECT_EQ(service_account_access("/account", "fd00::1", "443", file_content)->server,
            "https://[fd00::1]:443");
  EXPECT_FALSE(service_account_access("/account", "", "", file_content));
  EXPECT_FALSE(service_account_access("/none", "10.96.0.1", "443", file_content));
}

}  // namespace
}  // namespace trainyard::launch
