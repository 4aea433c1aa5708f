#include "launch/slurm/unix_users.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

Result<UnixUser> find_known(const std::string& name) {
  const std::map<std::string, UnixUser> known = {{"root", {"root", 0, 0}},
                                                 {"munge", {"munge", 107, 111}},
                                                 {"nobody", {"nobody", 65534, 65534}},
                                                 {"alice", {"alice", 1001, 100}}};
  const auto found = known.find(name);
  if (found == known.end()) return not_found("unknown account '" + name + "'");
  return found->second;
}

TEST(UnixUsers, MapPrincipalsToAccounts) {
  const auto users = resolve_unix_users({{{"ana", "alice"}, {"*", "alice"}}, {}}, find_known);
  ASSERT_TRUE(users) << users.error().message;
  EXPECT_EQ(users->at("ana"), (UnixUser{"alice", 1001, 100}));
  EXPECT_EQ(users->at("*").user_id, 1001u);
}

TEST(UnixUsers, RejectSystemAccountsThatAreNotListed) {
  for (const char* name : {"root", "munge", "nobody"}) {
    const auto refused = resolve_unix_users({{{"ana", name}}, {}}, find_known);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().kind, Kind::denied);
    EXPECT_NE(refused.error().message.find("slurm.users.\"ana\".unix_user"), std::string::npos)
        << refused.error().message;
    EXPECT_TRUE(resolve_unix_users({{{"ana", name}}, {name}}, find_known)) << name;
  }
  EXPECT_FALSE(resolve_unix_users({{{"ana", "root"}}, {"munge"}}, find_known));
}

TEST(UnixUsers, RejectUnknownAccountsAndInvalidNames) {
  EXPECT_EQ(resolve_unix_users({{{"ana", "bob"}}, {}}, find_known).error().kind, Kind::not_found);
  for (const char* name : {"", "-u", "a b", "a,b", "0", "a/b", "a\nb", "alice*",
                           "a234567890123456789012345678901234"}) {
    EXPECT_FALSE(is_unix_name(name)) << name;
    EXPECT_EQ(resolve_unix_users({{{"ana", name}}, {}}, find_known).error().kind, Kind::invalid)
        << name;
  }
}

}  // namespace
}  // namespace trainyard::launch
