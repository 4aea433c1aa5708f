// The principal whose rights a campaign has: the one that started it.
//
// What the record says is known to the API alone (api/delegated_access.hpp), which decides at each use what the principal
// may do then. Here it is kept, and handed back with each request.
//
// Threads: plain values.
#pragma once

#include <string>

namespace trainyard::campaign {

struct Principal {
  std::string arn;     // as people see it
  std::string record;  // "" = the server's owner: of campaigns that were started before records were kept
  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace trainyard::campaign
