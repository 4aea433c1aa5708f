#include "os/parallel.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace trainyard::os {
namespace {

TEST(Parallel, CallsEachIndexOnce) {
  std::array<std::atomic<int>, 1000> calls{};
  EXPECT_TRUE(for_each_in_parallel(calls.size(), 8, [&](size_t i) -> Result<void> {
    ++calls[i];
    return {};
  }));
  for (const auto& each : calls) EXPECT_EQ(each, 1);
  EXPECT_TRUE(for_each_in_parallel(0, 8, [](size_t) { return invalid("never called"); }));
}

TEST(Parallel, StopsAfterTheFirstError) {
  std::atomic<size_t> calls = 0;
  const auto done = for_each_in_parallel(1'000'000, 4, [&](size_t i) -> Result<void> {
    if (++calls == 10) return not_found("number " + std::to_string(i));
    return {};
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, Kind::not_found);
  EXPECT_LT(calls, 1'000'000u);
  EXPECT_EQ(for_each_in_parallel(1, 0, [](size_t) { return invalid("alone"); }).error().message,
            "alone");
}

}  // namespace
}  // namespace trainyard::os
