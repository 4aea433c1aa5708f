#include "os/accounts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace trainyard::os {
namespace {

TEST(Accounts, FindsAccountsByNameAndNumber) {
  const auto root = find_account("root");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->user_id, 0u);
  EXPECT_EQ(find_account(0u)->name, "root");
  EXPECT_EQ(own_user_id(), ::geteuid());
}

TEST(Accounts, ReportsUnknownAccountsAsNotFound) {
  EXPECT_EQ(find_account("no-such-account").error().kind, Kind::not_found);
  EXPECT_EQ(find_account(4'000'000'000u).error().kind, Kind::not_found);
}

}  // namespace
}  // namespace trainyard::os
