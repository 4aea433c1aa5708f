// Names the principal whose rights a campaign has: the one that started it.
//
// Only the API understands the record (api/delegated_access.hpp); at each use it decides what the
// principal may do then. Here it is stored, and passed back with each request.
//
// Threads: plain values.
#pragma once

#include <string>

namespace trainyard::campaign {

struct Principal {
  std::string arn;  // as users see it
  // "" = the server's owner: of campaigns that were started before records were stored
  std::string record;
  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace trainyard::campaign
