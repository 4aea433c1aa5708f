#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace trainyard {
namespace {

TEST(Nearest, SuggestsTheClosestName) {
  const std::vector<std::string> names{"jobs", "describe", "logs", "top",
                                       "stop", "submit",   "shell"};
  EXPECT_EQ(nearest("jbos", names), "jobs");
  EXPECT_EQ(nearest("desc", names), "describe");
  EXPECT_EQ(nearest("sumbit", names), "submit");
  EXPECT_EQ(nearest("stpo", names), "stop");
  EXPECT_EQ(nearest("kubectl", names), "");
}

}  // namespace
}  // namespace trainyard
