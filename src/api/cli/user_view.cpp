#include "cli/user_view.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

constexpr int kUserWidthMin = 8;
constexpr int kNameWidthMax = 32;  // longer names of groups and policies are broken, not whole

// The width at which a column of lists breaks between names only, and its title is whole.
int list_width(std::string_view title, const std::vector<UserView>& users,
               std::vector<std::string> UserView::*names) {
  int widest = width_of(title);
  for (const UserView& user : users)
    for (const std::string& name : user.*names)
      widest = std::max(widest, std::min(width_of(name) + width_of(","), kNameWidthMax));
  return widest;
}

}  // namespace

Json to_json(const UserView& user) {
  Json keys = Json::array();
  for (const KeyView& key : user.keys) {
    keys.push_back({{"AccessKeyId", key.id}, {"Status", key.active ? "Active" : "Inactive"}});
    if (!key.last_used.empty()) keys.back()["LastUsedDate"] = key.last_used;
  }
  return {{"UserName", user.name},
          {"Arn", user.arn},
          {"Groups", user.groups},
          {"Policies", user.policies},
          {"AccessKeys", keys}};
}

std::string users_table(const OutputStyle& style, const std::vector<UserView>& users) {
  if (users.empty()) return "no users besides those that have only an [[access_key]]\n";
  std::vector<std::vector<Cell>> rows;
  for (const UserView& user : users) {
    std::vector<std::string> keys;
    std::string last_used;  // ISO texts order like instants
    for (const KeyView& key : user.keys) {
      keys.push_back(key.id + (key.active ? "" : " (inactive)"));
      last_used = std::max(last_used, key.last_used);
    }
    const bool idle = user.groups.empty() && user.policies.empty();
    rows.push_back({{harmless(style, user.name), Paint::bold},
                    {harmless(style, join(user.groups, ", "))},
                    {idle ? "none: may do nothing" : harmless(style, join(user.policies, ", ")),
                     idle ? Paint::yellow : Paint::none},
                    {join(keys, ", ")},
                    {user.keys.empty()   ? ""
                     : last_used.empty() ? "never"
                                         : last_used}});
  }
  return table(style,
               {{.title = "user", .width_min = kUserWidthMin},
                {.title = "groups",
                 .width_min = list_width("groups", users, &UserView::groups),
                 .overflow = Overflow::wrap},
                {.title = "policies",
                 .width_min = list_width("policies", users, &UserView::policies),
                 .overflow = Overflow::wrap},
                {.title = "access keys", .drop = 1},
                {.title = "last used", .drop = 2}},
               rows);
}

}  // namespace trainyard::cli
