// Identifies the principal that started a campaign, whose rights it has.
//
// Only the API layer interprets the record (api/delegated_access.hpp): at each use it decides what
// the principal may do. This module stores it, and passes it back with each request.
//
// Threads: plain values.
#pragma once

#include <string>

namespace trainyard::campaign {

struct Principal {
  std::string arn;  // as users see it
  // "": the server's owner, for campaigns that were started before records were stored.
  std::string record;
  friend bool operator==(const Principal&, const Principal&) = default;
};

}  // namespace trainyard::campaign
