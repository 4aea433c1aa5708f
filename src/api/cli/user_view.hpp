// Formats users of the server, collected from IAM's responses, as the table of `trainyard user
// list`.
//
// Threads: plain values, pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

struct KeyView {
  std::string id;
  bool active = true;
  std::string last_used;  // "2026-11-20T09:45:00Z"; "" = never
};

struct UserView {
  std::string name, arn;
  std::vector<std::string> groups;
  std::vector<std::string> policies;  // names: attached and inline ones
  std::vector<KeyView> keys;
};

Json to_json(const UserView& user);
std::string users_table(const OutputStyle& style, const std::vector<UserView>& users);

}  // namespace trainyard::cli
