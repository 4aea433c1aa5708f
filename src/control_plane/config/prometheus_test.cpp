#include "config/prometheus.hpp"

#include <gtest/gtest.h>

#include "config/config.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::config {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct PrometheusConfig : testing::Test {
  const os::TemporaryDirectory directory;

  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(os::write_file_durably(directory.path() + "/" + name, text));
  }
  Result<Config> read(const std::string& text) const {
    return parse_config(text, directory.path() + "/trainyard.toml");
  }
  std::string error_of(const std::string& text) const {
    const auto config = read(text);
    return config ? "" : config.error().message;
  }
};

TEST_F(PrometheusConfig, HasTokensAndReceivers) {
  write("scrape.token", "a-token-of-17-byte\n");
  write("mimir", "Bearer secret\n");
  const auto config = read(R"(
    [prometheus]
    series_of_job_max = 10
    [[prometheus.tokens]]
    token_file = "scrape.token"
    user = "grafana"
    [[prometheus.remote_write]]
    name = "mimir"
    url = "https://mimir.lan/api/v1/push"
    authorization_file = "mimir"
    ca_bundle = "ca.pem")");
  ASSERT_TRUE(config) << config.error().message;
  const PrometheusSettings& settings = config->prometheus;
  EXPECT_EQ(settings.series_of_job_max, 10);
  EXPECT_EQ(settings.series_max, 100'000);
  ASSERT_EQ(settings.tokens.size(), 1U);
  EXPECT_EQ(settings.tokens[0].token, "a-token-of-17-byte");
  EXPECT_EQ(settings.tokens[0].user, "grafana");
  ASSERT_EQ(settings.remote_write.size(), 1U);
  EXPECT_EQ(settings.remote_write[0].headers, (Headers{{"Authorization", "Bearer secret"}}));
  EXPECT_FALSE(settings.remote_write[0].otlp);
  EXPECT_EQ(settings.remote_write[0].ca_bundle, directory.path() + "/ca.pem");
}

TEST_F(PrometheusConfig, HasTheHeadersOfOtlpReceivers) {
  write("datadog", "dd-api-key: secret\n\nx-scope-orgid:a: b\n");
  const auto config = read(
      "[[otlp]]\nname = 'datadog'\nurl = 'http://agent:4318/v1/metrics'\n"
      "headers_file = 'datadog'");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->prometheus.remote_write.size(), 1U);
  const RemoteWriteTarget& target = config->prometheus.remote_write[0];
  EXPECT_TRUE(target.otlp);
  EXPECT_EQ(target.headers, (Headers{{"dd-api-key", "secret"}, {"x-scope-orgid", "a: b"}}));
}

TEST_F(PrometheusConfig, NamesInvalidValues) {
  write("no-header", "secret\n");
  write("short", "secret");
  write("blank", "a token with blanks in it");
  const std::string receiver = "[[prometheus.remote_write]]\nname = 'a'\nurl = 'http://a/'\n";
  const std::pair<std::string, std::string> cases[] = {
      {"[prometheus]\nseries_max = 0", "prometheus.series_max must be between 1 and 1000000"},
      {"[[prometheus.tokens]]\nuser = 'a'", "token_file is missing: it must be the name of a file"},
      {"[[prometheus.tokens]]\ntoken_file = 'missing'", "token_file"},
      {"[[prometheus.tokens]]\ntoken_file = 'short'", "16 to 1024 visible characters"},
      {"[[prometheus.tokens]]\ntoken_file = 'blank'", "16 to 1024 visible characters"},
      {"[[prometheus.remote_write]]\nname = 'A b'", "lower-case letters"},
      {receiver + "headers_file = 'no-header'", "each line of the file must be a header"},
      {receiver + "[[otlp]]\nname = 'a'\nurl = 'http://b/'", "two receivers have the name 'a'"},
      {"[[prometheus.remote_write]]\nname = 'a'\nurl = 'a'", "must be a URL, http:// or https://"},
      {receiver + receiver, "two receivers have the name 'a'"},
      {"[prometheus]\nother = 1", "other"}};
  for (const auto& [text, error] : cases)
    EXPECT_NE(error_of(text).find(error), std::string::npos) << text << "\n" << error_of(text);
}

}  // namespace
}  // namespace trainyard::config
