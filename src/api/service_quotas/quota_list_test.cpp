#include "service_quotas/quota_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace trainyard::api::service_quotas {
namespace {

TEST(ServiceQuotas, HaveUniqueNamesAndStableCodes) {
  const auto all = service_quotas({{"", "", "ml.m5.large", 3}}, "owner", "eu-west-1");
  std::set<std::string> codes;
  for (const ServiceQuota& each : all) {
    EXPECT_TRUE(codes.insert(each.code()).second) << each.name;
    EXPECT_EQ(each.code().size(), 10u);
    EXPECT_TRUE(std::ranges::any_of(
        quota_services(), [&](const auto& service) { return service.code == each.service; }));
  }
  const auto found = std::ranges::find(all, "Job queue limit", &ServiceQuota::name);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->value, 50);
  EXPECT_EQ(found->code(), (ServiceQuota{"batch", "Job queue limit", 1, ""}.code()));
}

TEST(ServiceQuotas, IncludeThePrincipalsInstanceQuotas) {
  const std::vector<domain::InstanceQuota> quotas{
      {"", "", "ml.m5.large", 1}, {"alice", "", "ml.m5.large", 3}, {"bob", "", "ml.c5.large", 5}};
  const auto all = service_quotas(quotas, "alice", "eu-west-1");
  const auto found =
      std::ranges::find(all, "ml.m5.large for training job usage", &ServiceQuota::name);
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->value, 3);
  EXPECT_TRUE(
      std::ranges::none_of(all, [](const auto& each) { return each.name.starts_with("ml.c5"); }));
}

}  // namespace
}  // namespace trainyard::api::service_quotas
