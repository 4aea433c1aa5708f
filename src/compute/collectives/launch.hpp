// Determines how the ranks of a program find each other, from the environment of their launcher:
// horovodrun, torchrun, an MPI launcher, SageMaker's resourceconfig.json, or our own variables.
// C++, the C interface and Python's horovod use it. base/ranks/variables.hpp defines the names of
// the variables.
//
//   TRAINYARD_RANK, TRAINYARD_RANKS     rank and number of ranks; override all others except
//                                       horovodrun's. TRAINYARD_LOCAL_RANK, TRAINYARD_LOCAL_RANKS:
//                                       the same among the ranks on this machine
//   TRAINYARD_RENDEZVOUS                HOST:PORT at which rank 0 listens, or a folder that all
//                                       ranks see
//   TRAINYARD_SECRET                    the secret of the group; default: the name of the job or
//                                       run
//   TRAINYARD_ENCRYPT                   1: TLS between hosts; needs TRAINYARD_SECRET, since names
//                                       are not secret
//   TRAINYARD_SOCKETS                   number of sockets for large messages between two ranks
//   TRAINYARD_PLANS                     plans of operations: "allreduce=one_shot:0-64K,ring:64K-"
//   TRAINYARD_DETERMINISTIC             1: plans do not depend on measured costs, so every run adds
//                                       in the same order
//   TRAINYARD_ADDRESS                   the address at which other hosts reach this one, for torch
//   TRAINYARD_IN_PLACE                  0: large tensors are copied every time, for torch
//   TRAINYARD_ACTIVITY                  the activity table of the host, in which the rank is counted
//
// A switch is off when it is 0, false, no, off or empty, in upper or lower case; else it is on.
//
// Launchers set:
//   horovodrun  HOROVOD_GLOO_RENDEZVOUS_ADDR, HOROVOD_GLOO_RENDEZVOUS_PORT: the service that knows
//               all ranks; HOROVOD_RANK, HOROVOD_SIZE, HOROVOD_LOCAL_RANK, HOROVOD_LOCAL_SIZE, or
//               HOROVOD_ELASTIC=1: the service gives them. HOROVOD_HOSTNAME, TRAINYARD_MEMBER: the
//               names of host and process that the service knows
//   Open MPI    OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK,
//               OMPI_COMM_WORLD_LOCAL_SIZE
//   MPICH       PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
//   PMIx        PMIX_RANK: not read here, since no variable has the number of ranks
//   torchrun    RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   SageMaker   resourceconfig.json, else SM_HOSTS and SM_CURRENT_HOST: one rank on each host,
//               rendezvous at the first one
// MASTER_PORT is torchrun's own; the rendezvous uses a port after it (Ports). MPI launchers do not
// name a host for the rendezvous: MASTER_ADDR or the first host of resourceconfig.json does;
// without them all ranks must be on this machine.
//
// Threads: the readers are pure functions; join() has the rules of join_over_tcp. Errors: invalid,
// naming the variable.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::collectives {

// Returns the value of an environment variable, if it is set.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

struct Launch {
  int rank = 0;
  int ranks = 1;
  // Rank and number among the ranks on this machine. Unset: determined from the ranks that share
  // memory.
  std::optional<int> local_rank;
  std::optional<int> local_ranks;
  // Either `rendezvous` or `folder` is set when there are several ranks.
  std::optional<Endpoint> rendezvous;  // rank 0 listens here, and sends the endpoints of all ranks
  // each rank writes its endpoint here; must be used by this run only
  std::string folder;
  // Set by horovodrun only, in place of these two: the service of membership/service.hpp.
  std::optional<Endpoint> service;
  bool elastic = false;  // the service also gives rank and ranks, which are -1 and 0 here
  std::string host;      // names of host and process for the service
  std::string member;
  std::string secret;
  bool encrypt = false;
  std::optional<int> sockets_per_peer;
  std::string plans;
  bool deterministic = false;
  std::string address;
  bool register_in_place = true;
  ActivityFile activity = {};
  std::string launcher;  // the source of rank and ranks, for messages: "torchrun"
};

// The hosts of a job, as SageMaker names them.
struct Hosts {
  std::vector<std::string> names;
  int current = 0;
};
inline constexpr const char* kResourceconfigPath = "/opt/ml/input/config/resourceconfig.json";
Result<Hosts> read_hosts(std::string_view resourceconfig_json);
// Reads the hosts from SM_HOSTS and SM_CURRENT_HOST. `names_json` is a JSON list of strings.
Result<Hosts> read_hosts(std::string_view names_json, std::string_view current);

// The ports of a rendezvous. Libraries that may run in the same processes use different ports.
struct Ports {
  uint16_t hosts = 0;  // at the first host of resourceconfig.json, which has no ports
  uint16_t after_master_port = 0;
};
inline constexpr Ports kCollectivesPorts{7829, 1};
// MASTER_PORT + 2 is used by the job itself if MASTER_PORT is 7777
inline constexpr Ports kHorovodPorts{7828, 3};

// Reads only the variables that do not depend on the launcher: from TRAINYARD_SECRET to
// TRAINYARD_IN_PLACE. For ranks that find each other in another way.
Result<Launch> read_connection(const Variables& variables);

// Reads all variables. `hosts` come from resourceconfig.json, if it exists.
Result<Launch> read_launch(const Variables& variables, const std::optional<Hosts>& hosts = {},
                           Ports ports = kCollectivesPorts);

// Sets the rendezvous: HOST:PORT at which rank 0 listens, or the absolute path of a
// folder. Errors: invalid.
Result<void> set_rendezvous(Launch& launch, std::string_view rendezvous);

// Joins the other ranks. Sets endpoints and rank of `options`, and the secret, the plans and the
// switches that are empty or off. A rank is reached at the address from which it connected to the
// rendezvous, whatever the name of its host is. Errors: also invalid for a service, which assigns
// ranks to programs of horovod only.
Result<std::unique_ptr<Group>> join(const Launch& launch, TcpOptions options = {});

}  // namespace trainyard::collectives
