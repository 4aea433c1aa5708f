// Finds the members of a request that are stored and described, but have no effect on this server.
//
// Each service that creates jobs has one table of such members. The found ones become
// JobSpec::notes: the job's log and `trainyard describe` show a line for each.
// docs/compatibility.md lists the tables.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace trainyard::api {

struct NoEffect {
  std::string_view member;       // path in the request: "VpcConfig"; "InputDataConfig[].DataSource"
  std::string_view instead;      // what happens instead: the rest of the sentence
  std::string_view unless = {};  // a path: if it is true, the request does not use the member
};

// Returns "MEMBER has no effect here: INSTEAD" for each member that the request sets, in the order
// of the table. A value that is empty, null or false does not count.
std::vector<std::string> notes_of(const Json& request, std::span<const NoEffect> table);

}  // namespace trainyard::api
