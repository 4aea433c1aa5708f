#include "host/cgroup.hpp"

#include <gtest/gtest.h>

namespace trainyard::host {
namespace {

TEST(CgroupLayout, ReadsV1HybridAndV2) {
  const auto hybrid = parse_cgroup_layout(
      "35 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "33 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
      "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(hybrid.mode, CgroupMode::hybrid);
  EXPECT_EQ(hybrid.hybrid_unified, "/sys/fs/cgroup/unified");
  ASSERT_TRUE(hybrid.with("cpuacct"));
  EXPECT_EQ(hybrid.with("cpuacct")->path, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_FALSE(hybrid.with("pids"));
  const auto v2 =
      parse_cgroup_layout("30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  EXPECT_EQ(v2.mode, CgroupMode::v2);
  EXPECT_EQ(v2.hybrid_unified, "");
  EXPECT_EQ(parse_cgroup_layout("22 27 0:21 / /proc rw - proc proc rw\n").mode, CgroupMode::none);
}

TEST(CgroupLayout, NamesDifferByDirectory) {
  EXPECT_EQ(cgroup_name("j1a1-0", "/a/b"), cgroup_name("j1a1-0", "/a/b/"));
  EXPECT_NE(cgroup_name("j1a1-0", "/a/b"), cgroup_name("j1a1-0", "/a/c"));
}

}  // namespace
}  // namespace trainyard::host
