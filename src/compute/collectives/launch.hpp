// Determines how the ranks of a program find each other, from the environment of their launcher: torchrun, an MPI launcher,
// SageMaker's resourceconfig.json, or our own variables.
//
//   TRAINYARD_RANK, TRAINYARD_RANKS     rank and number of ranks; override all others
//   TRAINYARD_MEETING                   HOST:PORT at which rank 0 listens, or a folder that all ranks see
//   TRAINYARD_SECRET                    the secret of the group; default: the name of the job or run
//   TRAINYARD_ENCRYPT                   1: TLS between hosts; needs TRAINYARD_SECRET, since names are not secret. Off when it
//                                       is 0, false, no, off or empty, in any case; else on
//   TRAINYARD_SOCKETS                   number of sockets for large messages between two ranks
//
// Launchers set:
//   torchrun    RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; the rendezvous uses the port after MASTER_PORT, which is
//               torchrun's
//   Open MPI    OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_SIZE
//   MPICH       PMI_RANK, PMI_SIZE
//   SageMaker   resourceconfig.json: one rank on each host, rendezvous at the first one
// MPI launchers do not name a host for the rendezvous: MASTER_ADDR or the first host of resourceconfig.json does; without
// them all ranks must be on this machine.
//
// Threads: read_launch is a pure function; join as join_over_tcp. Errors: invalid, naming the variable.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::collectives {

// Returns the value of an environment variable, if it is set.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

struct Launch {
  int rank = 0;
  int ranks = 1;
  // One of the two is set when there are several ranks.
  std::optional<Endpoint> meeting;  // rank 0 listens here, and sends the endpoints of all ranks
  std::string folder;               // each rank writes its endpoint here; must be used by this run only
  std::string secret;
  bool encrypt = false;
  std::optional<int> sockets_per_peer;
  std::string told_by;  // the source of rank and ranks, for messages: "torchrun"
};

inline constexpr uint16_t meeting_port = 7829;  // for the hosts of resourceconfig.json, which has no ports

Result<Launch> read_launch(const Variables& variables, std::string_view resourceconfig_json = {});

// Joins the other ranks. Sets endpoints and rank of `options`, and the secret when it is empty. A rank is reached at the
// address from which it connected to the rendezvous, whatever the name of its host is.
Result<std::unique_ptr<Group>> join(const Launch& launch, TcpOptions options = {});

}  // namespace trainyard::collectives
