#include "os/environment.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace trainyard::os {
namespace {

constexpr const char* kName = "TRAINYARD_ENVIRONMENT_TEST";

TEST(Environment, ReadsVariables) {
  ASSERT_EQ(::setenv(kName, "value", 1), 0);
  EXPECT_EQ(environment_variable(kName), "value");
  ASSERT_EQ(::unsetenv(kName), 0);
  EXPECT_EQ(environment_variable(kName), "");
}

}  // namespace
}  // namespace trainyard::os
