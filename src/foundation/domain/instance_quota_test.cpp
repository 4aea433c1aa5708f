#include "domain/instance_quota.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

TEST(InstanceQuotas, AppliesTheMostSpecificQuota) {
  const std::vector<InstanceQuota> quotas{{"", "", "ml.m5.large", 1},
                                          {"", "eu-west-1", "ml.m5.large", 2},
                                          {"alice", "", "ml.m5.large", 3},
                                          {"alice", "eu-west-1", "ml.m5.large", 4},
                                          {"bob", "", "ml.c5.large", 5}};
  const auto count = [&](const char* who, const char* region) {
    const InstanceQuota* found = quota_of(quotas, who, region, "ml.m5.large");
    return found ? found->count : -1;
  };
  EXPECT_EQ(count("carol", "us-east-1"), 1);
  EXPECT_EQ(count("carol", "eu-west-1"), 2);
  EXPECT_EQ(count("alice", "us-east-1"), 3);
  EXPECT_EQ(count("alice", "eu-west-1"), 4);
  EXPECT_EQ(quota_of(quotas, "alice", "eu-west-1", "ml.c5.large"), nullptr)
      << "a quota of another user";
}

}  // namespace
}  // namespace trainyard::domain
