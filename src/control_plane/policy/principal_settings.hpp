// Defines what an operator sets for principals: their keys, peers that act on their behalf, and the
// rates of their requests.
//
// Threads: plain values.
#pragma once

#include <string>
#include <vector>

namespace trainyard::policy {

struct ConfiguredKey {
  std::string id;
  std::string secret;
  std::string user = "owner";  // whose it is: of several users each has his share and his quotas
};

// Another server that may make requests on behalf of principals of this one: requests that its own
// clients made there for a region which is this server's.
struct Peer {
  std::string access_key_id;  // the key of a user of this server that the other one signs with
  // on whose behalf, by name; '*' stands for any text
  std::vector<std::string> users = {"*"}, roles = {"*"};
};

enum class OperationClass {
  reads,    // of the control plane: Describe, List, Get ..
  changes,  // the rest of it
  objects,  // S3
};

// Requests a second; 0: no limit.
struct RateLimits {
  double reads_per_second = 0;
  double changes_per_second = 0;
  double objects_per_second = 0;
  double burst_seconds = 10;  // bursts may use the unused rate of this many seconds

  double per_second(OperationClass operations) const;
};

}  // namespace trainyard::policy
