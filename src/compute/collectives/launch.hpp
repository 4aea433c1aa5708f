// How the ranks of a program find each other, by what started them: torchrun, an MPI launcher, SageMaker's
// resourceconfig.json, or our own variables.
//
//   TRAINYARD_RANK, TRAINYARD_RANKS     who we are; come before all others
//   TRAINYARD_MEETING                   HOST:PORT where rank 0 listens, or a folder that all ranks see
//   TRAINYARD_SECRET                    the group's secret; else the job's or run's name
//   TRAINYARD_ENCRYPT                   1: TLS between hosts; takes a TRAINYARD_SECRET, since names are no secrets.
//                                       Off when it is 0, false, no, off or empty, in any case; else on
//   TRAINYARD_SOCKETS                   how many sockets carry large messages between two ranks
//
// What launchers give:
//   torchrun    RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT: met at the port after MASTER_PORT, which is torchrun's
//   Open MPI    OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_SIZE
//   MPICH       PMI_RANK, PMI_SIZE
//   SageMaker   resourceconfig.json: one rank on each host, met at the first one
// MPI says nothing of where to meet: MASTER_ADDR or the first host of resourceconfig.json do; without them all
// ranks must be on this machine.
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

// The value of an environment variable, where there is one.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

struct Launch {
  int rank = 0;
  int ranks = 1;
  // One of the two, where there is more than one rank.
  std::optional<Endpoint> meeting;  // rank 0 listens here, and tells everyone where all are
  std::string folder;               // each rank leaves its endpoint here; must be this run's own
  std::string secret;
  bool encrypt = false;
  std::optional<int> sockets_per_peer;
  std::string told_by;  // for people: "torchrun"
};

inline constexpr uint16_t meeting_port = 7829;  // where resourceconfig.json names hosts and nobody a port

Result<Launch> read_launch(const Variables& variables, std::string_view resourceconfig_json = {});

// Meets the others as the launch says. Of `options`, endpoints and rank are found out here, and the secret unless
// there is one. A rank is reached at the address from which it came to the meeting, whatever its host is called.
Result<std::unique_ptr<Group>> join(const Launch& launch, TcpOptions options = {});

}  // namespace trainyard::collectives
