#include "agent/job_config.hpp"

#include <gtest/gtest.h>

#include "agent/endpoints.hpp"

namespace trainyard::agent {
namespace {

wire::Order order_of_two() {
  wire::Order order;
  order.job = {"eu-west-1", "digits"};
  order.host = 1;
  order.spec.groups = {{"a", "ml.m5.large", 1}, {"b", "ml.c5.xlarge", 2}};
  order.share.memory_bytes = 1 << 30;
  return order;
}

TEST(JobConfig, HostsAreCountedOverAllGroups) {
  const auto config = host_config(order_of_two());
  EXPECT_EQ(config.hosts, (std::vector<std::string>{"algo-1", "algo-2", "algo-3"}));
  EXPECT_EQ(config.current_host, "algo-2");
  EXPECT_EQ(config.current_group, "b");
  EXPECT_EQ(config.current_instance_type, "ml.c5.xlarge");
  EXPECT_EQ(config.groups[1].hosts, (std::vector<std::string>{"algo-2", "algo-3"}));
}

TEST(JobConfig, TheRequestsEnvironmentOverridesImageAndEgress) {
  auto order = order_of_two();
  order.egress_settings.http_proxy = "http://proxy:3128";
  order.egress_settings.package_index = "http://pip/simple";
  order.spec.environment = {{"PATH", "/mine"}, {"PIP_INDEX_URL", "http://my/simple"}};
  const auto variables =
      container_environment(order, {}, {{"PATH", "/image"}, {"HOME", "/home/image"}});
  EXPECT_EQ(variables.at("PATH"), "/mine");
  EXPECT_EQ(variables.at("HOME"), "/home/image");
  EXPECT_EQ(variables.at("PIP_INDEX_URL"), "http://my/simple");
  EXPECT_EQ(variables.at("http_proxy"), "http://proxy:3128");
  EXPECT_EQ(variables.at("no_proxy"), "localhost,127.0.0.1,169.254.170.2,algo-1,algo-2,algo-3");
}

TEST(JobConfig, DescribesShares) {
  auto order = order_of_two();
  EXPECT_EQ(memory_limit_text(order), "1.0 GiB memory limit (1/8 of ml.c5.xlarge)");
  order.share.memory_bytes = 8LL << 30;
  EXPECT_EQ(memory_limit_text(order), "8.0 GiB memory limit (all of ml.c5.xlarge)");
  order.share.memory_bytes = 3LL << 30;
  EXPECT_EQ(memory_limit_text(order), "3.0 GiB memory limit (of the 8.0 GiB of ml.c5.xlarge)");
}

TEST(JobConfig, MakesTheHostsAndResolverFiles) {
  EXPECT_EQ(hosts_file("10.0.0.2 algo-1"), "127.0.0.1 localhost\n10.0.0.2 algo-1\n");
  EXPECT_EQ(hosts_file("127.0.0.1 localhost\n"), "127.0.0.1 localhost\n");
  EXPECT_EQ(resolver_file({}, "# c\nnameserver 127.0.0.53\nnameserver 10.0.0.1\nsearch x\n"),
            "nameserver 10.0.0.1\nsearch x\n");
  EXPECT_EQ(
      resolver_file({}, "nameserver 127.0.0.53\nnameserver 10.0.0.1\nsearch x\n", "198.18.255.3"),
      "nameserver 198.18.255.3\nsearch x\n");
  domain::EgressSettings egress_settings;
  egress_settings.name_servers = {"9.9.9.9"};
  EXPECT_EQ(resolver_file(egress_settings, "nameserver 10.0.0.1\n"), "nameserver 9.9.9.9\n");
}

TEST(Endpoints, ReturnsCredentialsForTheRightPathAndToken) {
  wire::Credentials keys{"AKIA", "secret", "session", from_milliseconds(1'763'631'900'000)};
  const auto request = [&](std::string_view method, std::string_view path, std::string_view token,
                           bool ready = true) {
    return answer_credentials(method, path, token, "/v2/credentials/1", "right",
                              ready ? std::optional(keys) : std::nullopt, "arn:role");
  };
  EXPECT_EQ(
      request("GET", "/v2/credentials/1", "right").body,
      R"({"AccessKeyId":"AKIA","Expiration":"2025-11-20T09:45:00Z","RoleArn":"arn:role","SecretAccessKey":"secret","Token":"session"})");
  EXPECT_EQ(request("GET", "/v2/credentials/1", "").status, 200);
  EXPECT_EQ(request("GET", "/v2/credentials/1", "wrong").status, 403);
  EXPECT_EQ(request("GET", "/v2/credentials/2", "right").status, 404);
  EXPECT_EQ(request("GET", "/", "").status, 404);
  EXPECT_EQ(request("PUT", "/v2/credentials/1", "right").status, 405);
  EXPECT_EQ(request("GET", "/v2/credentials/1", "right", false).status, 503);
}

}  // namespace
}  // namespace trainyard::agent
