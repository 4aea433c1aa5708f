#include "base/plural.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

TEST(Counted, UsesTheSingularForOne) {
  EXPECT_EQ(counted(0, "job"), "0 jobs");
  EXPECT_EQ(counted(1, "job"), "1 job");
  EXPECT_EQ(counted(2, "job"), "2 jobs");
  EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(counted(3, "entry", "entries"), "3 entries");
}

}  // namespace
}  // namespace trainyard
