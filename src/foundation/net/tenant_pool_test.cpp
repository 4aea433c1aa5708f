#include "net/tenant_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

namespace trainyard::net {
namespace {

TEST(TenantPool, ATenantThatUsesItsShareLeavesTheOtherThreads) {
  std::promise<void> open;
  const std::shared_future<void> gate = open.get_future().share();
  std::atomic<int> blocked = 0;
  TenantPool pool(4, 2);
  for (int i = 0; i < 50; i++)
    ASSERT_TRUE(pool.run("hostile", [&, gate] {
      gate.wait();
      blocked++;
    }));
  // All of these end while all work of the other tenant is blocked.
  for (int i = 0; i < 20; i++) {
    std::promise<void> done;
    ASSERT_TRUE(pool.run("other", [&] { done.set_value(); }));
    done.get_future().wait();
  }
  EXPECT_EQ(blocked, 0);
  EXPECT_EQ(pool.load().waiting, 48u);
  open.set_value();
}

TEST(TenantPool, RunsAllWorkOfATenantInOrder) {
  std::string order;
  {
    TenantPool pool(8, 1);
    for (int i = 0; i < 26; i++) ASSERT_TRUE(pool.run("one", [&, i] { order += char('a' + i); }));
  }
  EXPECT_EQ(order, "abcdefghijklmnopqrstuvwxyz") << "one at a time needs no lock";
}

TEST(TenantPool, ReleasesTheShareAfterWork) {
  TenantPool pool(2, 1);
  for (int round = 0; round < 100; round++) {
    std::promise<void> done;
    ASSERT_TRUE(pool.run("one", [&] { done.set_value(); }));
    done.get_future().wait();
  }
}

}  // namespace
}  // namespace trainyard::net
