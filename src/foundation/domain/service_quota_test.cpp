#include "domain/service_quota.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace trainyard::domain {
namespace {

TEST(ServiceQuotas, AreNamedOnceAndAlwaysAlike) {
  const auto all = service_quotas({{"", "", "ml.m5.large", 3}}, "owner", "eu-west-1");
  std::set<std::string> codes;
  for (const ServiceQuota& each : all) {
    EXPECT_TRUE(codes.insert(each.code()).second) << each.name;
    EXPECT_EQ(each.code().size(), 10u);
    EXPECT_TRUE(std::ranges::any_of(quota_services(),
                                    [&](const auto& service) { return service.code == each.service; }));
  }
  const auto found = std::ranges::find(all, "Job queue limit", &ServiceQuota::name);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->value, 50);
  EXPECT_EQ(found->code(), (ServiceQuota{"batch", "Job queue limit", 1, ""}.code()));
}

TEST(ServiceQuotas, OfInstancesTheOneThatIsNearestCounts) {
  const std::vector<InstanceQuota> quotas{{"", "", "ml.m5.large", 1},
                                          {"", "eu-west-1", "ml.m5.large", 2},
                                          {"alice", "", "ml.m5.large", 3},
                                          {"alice", "eu-west-1", "ml.m5.large", 4},
                                          {"bob", "", "ml.c5.large", 5}};
  const auto count = [&](const char* who, const char* region) {
    const auto all = service_quotas(quotas, who, region);
    const auto found = std::ranges::find(all, "ml.m5.large for training job usage", &ServiceQuota::name);
    return found == all.end() ? -1 : found->value;
  };
  EXPECT_EQ(count("carol", "us-east-1"), 1);
  EXPECT_EQ(count("carol", "eu-west-1"), 2);
  EXPECT_EQ(count("alice", "us-east-1"), 3);
  EXPECT_EQ(count("alice", "eu-west-1"), 4);
  EXPECT_EQ(quota_of(quotas, "alice", "eu-west-1", "ml.c5.large"), nullptr) << "it is bob's";
  const auto of_alice = service_quotas(quotas, "alice", "eu-west-1");
  EXPECT_TRUE(
      std::ranges::none_of(of_alice, [](const auto& each) { return each.name.starts_with("ml.c5"); }));
}

}  // namespace
}  // namespace trainyard::domain
