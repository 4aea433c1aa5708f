#include "domain/role.hpp"

#include <gtest/gtest.h>

#include "domain/file_system.hpp"
#include "domain/image_policy.hpp"
#include "domain/image_sources.hpp"

namespace trainyard::domain {
namespace {

// ARNs of the role `lab` in requests: with the account of this server, with that of AWS's examples,
// and with any other account.
const std::string kWritten[] = {"arn:aws:iam::111122223333:role/lab",
                                "arn:aws:iam::123456789012:role/lab",
                                "arn:aws:iam::999999999999:role/lab"};

TEST(Role, MatchesEntriesByNameAndByArn) {
  const struct {
    const char* entry;
    const char* role;
    bool named;
  } cases[] = {
      {"lab", "arn:aws:iam::111122223333:role/lab", true},
      {"lab", "arn:aws:iam::111122223333:role/team/lab", true},
      {"l*", "arn:aws:iam::111122223333:role/team/lab", true},
      {"*", "arn:aws:iam::111122223333:role/team/lab", true},
      {"lab", "arn:aws:iam::111122223333:role/lab2", false},
      {"role", "arn:aws:iam::111122223333:role/lab", false},
      {"role/lab", "arn:aws:iam::111122223333:role/lab", true},
      {"r*", "arn:aws:iam::111122223333:role/lab", false},
      {"role*", "arn:aws:iam::111122223333:role/lab", false},
      {"role*", "arn:aws:iam::111122223333:role/team/roles", true},
      {"arn:aws:iam::111122223333:role/team/*", "arn:aws:iam::111122223333:role/team/lab", true},
      {"arn:aws:iam::*:role/team/*", "arn:aws:iam::111122223333:role/team/lab", true},
      {"arn:aws:iam::111122223333:role/team/*", "arn:aws:iam::111122223333:role/lab", false},
      {"arn:aws:iam::111122223333:role/lab", "arn:aws:iam::111122223333:role/team/lab", false},
      {"arn:aws:iam::111122223333:user/lab", "arn:aws:iam::111122223333:role/lab", false},
      {"111122223333*", "arn:aws:iam::111122223333:role/lab", false},
      {"*", "", false},
      {"", "", false},
      {"", "arn:aws:iam::111122223333:role/lab", false},
  };
  for (const auto& each : cases)
    EXPECT_EQ(names_role(each.entry, each.role), each.named) << each.entry << " " << each.role;
}

TEST(Role, EachListIgnoresTheAccountOfARole) {
  const Image image = *resolve_image({}, "registry.lan/train:1");
  for (const std::string& entry : kWritten) {
    FileSystem file_system;
    file_system.roles = {entry};
    const ImagePolicy policy{{{{"registry.lan/*", {entry}}}}, {}};
    const ImageSources sources{{{"registry.lan", "team", "secret", {}, {entry}}}, {}};
    for (const std::string& role : kWritten) {
      EXPECT_TRUE(may_use(file_system, {"", {role}})) << entry << " " << role;
      EXPECT_TRUE(check_image(policy, image, "registry.lan/train:1", role)) << entry << " " << role;
      EXPECT_TRUE(find_login(sources, image, "", role)) << entry << " " << role;
    }
    for (const std::string other :
         {"arn:aws:iam::111122223333:role/labs", "arn:aws:iam::999999999999:role/x/lab"}) {
      EXPECT_FALSE(may_use(file_system, {"", {other}})) << entry << " " << other;
      EXPECT_FALSE(check_image(policy, image, "registry.lan/train:1", other))
          << entry << " " << other;
      EXPECT_FALSE(find_login(sources, image, "", other)) << entry << " " << other;
    }
  }
}

}  // namespace
}  // namespace trainyard::domain
