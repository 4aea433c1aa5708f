// Exchanges the endpoints of all ranks, which initially know only one place.
//
// Threads: confined to one. Errors: as joining: unavailable, naming the ranks that did not come.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {

struct Met {
  std::vector<Endpoint> endpoints;  // of all ranks
  Socket listener;                  // at our own
};

// Rank 0 listens at `place`; the others connect to it, prove their membership and say where they listen; rank 0
// tells everyone. Of `options`: rank, secret, deadline, cancellation.
Result<Met> meet_at(const Endpoint& place, int ranks, const TcpOptions& options);

// Each rank leaves a file with its endpoint in a folder that all see, under its host's name. The folder must be
// this run's own: a file of another run would be believed.
Result<Met> meet_in(const std::string& folder, int ranks, const TcpOptions& options);

// The rest of join_over_tcp, for a rank that already listens.
Result<std::unique_ptr<Group>> join_met(TcpOptions options, Socket listener);

}  // namespace trainyard::collectives
