// Names the environment variables by which launchers give a process its rank.
//
// Threads: constants.
#pragma once

#include <string_view>

namespace trainyard {

struct RankVariables {
  std::string_view launcher;
  std::string_view rank, ranks;              // of the whole program
  std::string_view local_rank, local_ranks;  // of those on this machine
  bool of_mpi = false;
  // The ranks may lack: other programs set a variable of this name too.
  bool needs_both = false;
};

// A launcher that sets those of two is the first. An empty name: it sets no such variable.
inline constexpr RankVariables kRankVariables[] = {
    {"TRAINYARD_RANK", "TRAINYARD_RANK", "TRAINYARD_RANKS", "TRAINYARD_LOCAL_RANK",
     "TRAINYARD_LOCAL_RANKS"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    // Programs learn the number of ranks from its library only.
    {"PMIx", "PMIX_RANK", "", "", "", true},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false, true},
};

}  // namespace trainyard
