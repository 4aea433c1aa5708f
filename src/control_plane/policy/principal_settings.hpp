// Defines the settings of principals in the configuration: their keys, peers that act on their
// behalf, and the rates of their requests.
//
// Threads: plain values.
#pragma once

#include <string>
#include <vector>

namespace trainyard::policy {

struct ConfiguredKey {
  std::string id;
  std::string secret;
  std::string user = "owner";  // the user of the key; each user has a fair share and quotas
};

// A Peer is another server that may make requests on behalf of principals of this server: it
// forwards requests of its clients for a region of this server.
struct Peer {
  std::string access_key_id;  // the key of a user of this server with which the peer signs
  // names of principals for which it may act; '*' matches any text
  std::vector<std::string> users = {"*"}, roles = {"*"};
};

enum class OperationClass {
  reads,    // reading operations of the control plane: Describe, List, Get ..
  changes,  // other operations of the control plane
  objects,  // S3
};

// The limits on requests per second; 0: no limit.
struct RateLimits {
  double reads_per_second = 0;
  double changes_per_second = 0;
  double objects_per_second = 0;
  double burst_seconds = 10;  // bursts may use the unused rate of this many seconds

  double per_second(OperationClass operations) const;
};

}  // namespace trainyard::policy
