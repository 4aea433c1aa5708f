#include "cli/user_view.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace trainyard::cli {
namespace {

TEST(UserView, ListsUsersInATable) {
  const std::vector<UserView> users = {
      {"ann",
       "arn:ann",
       {"researchers"},
       {"PowerUserAccess", "own"},
       {{"AKIA1", true, "2026-11-20T09:45:00Z"}, {"AKIA2", false, ""}}},
      {"bob", "arn:bob", {}, {}, {}},
      {"cem", "arn:cem", {"researchers"}, {}, {{"AKIA3", true, ""}}},
  };
  EXPECT_EQ(users_table({}, users),
            "user  groups       policies              access keys              last used\n"
            "ann   researchers  PowerUserAccess, own  AKIA1, AKIA2 (inactive)  "
            "2026-11-20T09:45:00Z\n"
            "bob                none: may do nothing\n"
            "cem   researchers                        AKIA3                    never\n");
}

TEST(UserView, LinesFitOnTheTerminal) {
  const std::vector<UserView> users = {{"ann",
                                        "arn:ann",
                                        {"researchers", "administrators", "night-shift"},
                                        {"AmazonSageMakerFullAccess", "AmazonS3ReadOnlyAccess"},
                                        {{"AKIA1", true, "2026-11-20T09:45:00Z"}}}};
  for (const int columns : {60, 80, 120, 200}) {
    const std::string page = users_table({.columns = columns}, users);
    for (const auto line : split(page, '\n')) EXPECT_LE(width_of(line), columns) << page;
    for (const char* name : {"researchers", "administrators", "night-shift",
                             "AmazonSageMakerFullAccess", "AmazonS3ReadOnlyAccess"})
      EXPECT_NE(page.find(name), std::string::npos) << page;
  }
}

TEST(UserView, ReportsThatThereAreNoUsers) {
  EXPECT_EQ(users_table({}, {}), "no users besides those that have only an [[access_key]]\n");
}

TEST(UserView, HasIamsNamesInJson) {
  const UserView user{"ann", "arn:ann", {"a"}, {"p"}, {{"AKIA1", true, "2026-11-20T09:45:00Z"}}};
  EXPECT_EQ(to_json(user), (Json{{"UserName", "ann"},
                                 {"Arn", "arn:ann"},
                                 {"Groups", {"a"}},
                                 {"Policies", {"p"}},
                                 {"AccessKeys",
                                  {{{"AccessKeyId", "AKIA1"},
                                    {"Status", "Active"},
                                    {"LastUsedDate", "2026-11-20T09:45:00Z"}}}}}));
}

}  // namespace
}  // namespace trainyard::cli
