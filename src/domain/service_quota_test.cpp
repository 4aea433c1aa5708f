#include "domain/service_quota.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace trainyard::domain {
namespace {

TEST(ServiceQuotas, AreNamedOnceAndAlwaysAlike) {
  const auto all = service_quotas();
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

}  // namespace
}  // namespace trainyard::domain
