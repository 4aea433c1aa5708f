#include "host/mounts.hpp"

#include <gtest/gtest.h>

namespace trainyard::host {
namespace {

TEST(Mounts, AreFoundBelowADirectoryLastFirst) {
  constexpr const char* kText =
      "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
      "28 27 0:25 / /data/a rw - tmpfs x rw\n"
      "29 28 0:26 / /data/a/b\\040c rw shared:2 - tmpfs x rw\n"
      "30 27 0:27 / /data/ab rw - tmpfs x rw\n";
  EXPECT_EQ(mounts_below(kText, "/data/a"), (std::vector<std::string>{"/data/a/b c", "/data/a"}));
  EXPECT_TRUE(mounts_below(kText, "/dat").empty());
  EXPECT_TRUE(mounts_below("rubbish\n", "/data").empty());
}

}  // namespace
}  // namespace trainyard::host
