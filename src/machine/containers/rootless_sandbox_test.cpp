#include "containers/rootless_sandbox.hpp"

#include <gtest/gtest.h>

namespace trainyard::containers {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(IdGrants, ReturnsTheLinesOfTheUser) {
  struct Case {
    const char* text;
    const char* expected;  // arguments of newuidmap for user 1000
  } const cases[] = {
      {"", "0 1000 1"},
      {"someone:100000:65536\n", "0 1000 1"},
      {"me:100000:65536\n", "0 1000 1 1 100000 65536"},
      {"1000:100000:65536\n", "0 1000 1 1 100000 65536"},
      {"# mine\nme:100000:1000\nyou:1:1\nme:300000:2000",
       "0 1000 1 1 100000 1000 1001 300000 2000"},
      {"me:0:65536\nme:1:0\nme:x:1\nme:1\nme:4294967295:9\n", "0 1000 1"},
      {":100000:65536\n", "0 1000 1"},
  };
  for (const auto& each : cases)
    EXPECT_EQ(joined(id_map_arguments(1000, parse_id_grants(each.text, "me", 1000))), each.expected)
        << each.text;
  EXPECT_TRUE(parse_id_grants(":100000:65536\n", "", 1000).empty())
      << "who has no name has no lines by name";
}

TEST(RootlessSandbox, IsNotUsedByRootOfTheMachine) {
  if (in_rootless_sandbox()) GTEST_SKIP() << "these tests run as an ordinary user";
  EXPECT_EQ(run_directory(), "/run/trainyard");
  EXPECT_EQ(network_of_bridges(), "");
  EXPECT_EQ(why_no_egress(), "");
}

}  // namespace
}  // namespace trainyard::containers
