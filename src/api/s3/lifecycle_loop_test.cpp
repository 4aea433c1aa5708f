#include "s3/lifecycle_loop.hpp"

#include <gtest/gtest.h>

#include <future>

#include "objects/objects.hpp"
#include "operations/testing/operation_caller.hpp"
#include "s3/operations.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

constexpr Duration kLimit = 60s;  // of a wait

// ExpiredWorld has three objects that a lifecycle rule of their bucket removes.
struct ExpiredWorld : OperationsWorld {
  ExpiredWorld() : OperationsWorld(add_operations) {
    EXPECT_TRUE(call<s3::CreateBucket>({.bucket = "data"}));
    for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(write_all(*objects, "data", key, "bytes"));
    s3::LifecycleRule rule;
    rule.status = "Enabled";
    rule.filter.emplace();
    rule.expiration.emplace().days = 1;
    s3::PutBucketLifecycleConfigurationRequest in{.bucket = "data"};
    in.lifecycle_configuration.emplace().rules = {{rule}};
    EXPECT_TRUE(call<s3::PutBucketLifecycleConfiguration>(in));
    clock.advance(72h);
  }
  size_t left() { return objects->list("data", {})->objects.size(); }
};

// Runs a loop whose first `times` checks of the lease succeed, and ends it after check number
// `last`.
void run_loop(ExpiredWorld& world, int times, int last) {
  std::promise<void> checked;
  int checks = 0;
  const LifecycleLoop loop(*world.objects, world.control, world.clock, [&]() -> std::string {
    if (++checks == last) checked.set_value();
    return checks <= times ? "" : "another server has the lease";
  });
  EXPECT_EQ(checked.get_future().wait_for(kLimit), std::future_status::ready);
}

// The loop checks the lease before a bucket and before each of its objects.

TEST(LifecycleLoop, RemovesNothingWithoutTheLease) {
  ExpiredWorld world;
  run_loop(world, 0, 1);
  EXPECT_EQ(world.left(), 3u);
}

TEST(LifecycleLoop, EndsItsPassWhenTheLeaseIsLost) {
  ExpiredWorld world;
  run_loop(world, 2, 3);
  EXPECT_EQ(world.left(), 2u);
}

TEST(LifecycleLoop, RemovesExpiredObjectsWithTheLease) {
  ExpiredWorld world;
  run_loop(world, 4, 4);
  EXPECT_EQ(world.left(), 0u);
}

}  // namespace
}  // namespace trainyard::api::s3
