#include "trainyard_api/timeline/trace_limit.hpp"

#include <gtest/gtest.h>

namespace trainyard::api::trainyard_api {
namespace {

TEST(TraceLimit, LeavesPermitsToOtherCallers) {
  TraceLimit limit;
  auto first = limit.enter("ann"), second = limit.enter("ann");
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(limit.enter("ann"));
  const auto third = limit.enter("bob"), fourth = limit.enter("eve");
  EXPECT_TRUE(third && fourth);
  EXPECT_FALSE(limit.enter("joe")) << "all places are taken";
  second.reset();
  EXPECT_TRUE(limit.enter("joe"));
  first.reset();
  EXPECT_TRUE(limit.enter("ann")) << "a place is given back at the end";
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
