// Exchanges the endpoints of all ranks. Initially the ranks know only one endpoint or folder.
//
// Threads: confined to one. Errors: as join_over_tcp: unavailable, naming the ranks that did not
// join.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {

struct Bootstrap {
  std::vector<Endpoint> endpoints;  // of all ranks
  Socket listener;                  // at the endpoint of this rank
};

// Exchanges endpoints through rank 0, which listens at `endpoint`. The others connect to it, prove
// their membership and send their endpoints. Rank 0 sends all endpoints to every rank. Uses the
// rank, the secret, the deadline and the cancellation of `options`.
Result<Bootstrap> bootstrap_at(const Endpoint& endpoint, int ranks, const TcpOptions& options);

// Exchanges endpoints through files: each rank writes one with its host name and port into a folder
// that all ranks see. The folder must be used by this run only: the ranks cannot distinguish files
// of another run.
Result<Bootstrap> bootstrap_in(const std::string& folder, int ranks, const TcpOptions& options);

// Implements join_over_tcp for a rank that already listens.
Result<std::unique_ptr<Group>> join_bootstrapped(TcpOptions options, Socket listener);

}  // namespace trainyard::collectives
