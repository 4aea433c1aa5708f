#include "containers/process_limits.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>

namespace trainyard::containers {
namespace {

TEST(ProcessLimits, FindsResourcesByName) {
  EXPECT_EQ(resource_of("nofile"), int(RLIMIT_NOFILE));
  EXPECT_FALSE(resource_of("RLIMIT_NOFILE"));
}

TEST(ProcessLimits, RaisesToTheLimitOfTheMachineAndReportsTheRest) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  std::vector<ProcessLimit> limits = {
      {"memlock", UINT64_MAX, UINT64_MAX}, {"core", 0, 0}, {"none", 1, 1}};
  std::vector<std::string> withheld;
  raise_limits(limits, withheld);
  rlimit after = {};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &after), 0);
  EXPECT_EQ(limits[0].hard, after.rlim_max);
  EXPECT_EQ(limits[0].soft, limits[0].hard);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur) << "what we ourselves may use is as it was";
  EXPECT_EQ(withheld.size(), limits[0].hard == UINT64_MAX ? 0u : 1u);
  EXPECT_EQ(limits[1].hard, 0u) << "lowering is the runtime's";
}

}  // namespace
}  // namespace trainyard::containers
