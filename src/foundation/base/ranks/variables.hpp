// Names the environment variables by which launchers give a process its rank.
//
// Threads: constants.
#pragma once

#include <string_view>

namespace trainyard {

struct RankVariables {
  std::string_view launcher;
  std::string_view rank, ranks;              // rank and number of ranks in the whole program
  std::string_view local_rank, local_ranks;  // rank and number of ranks on this machine
  bool of_mpi = false;                       // the launcher is an MPI implementation
  // The variables apply only if both `rank` and `ranks` are set, because other programs set a
  // variable of the same name as `rank`.
  bool needs_both = false;
};

// The launchers in order of precedence: if variables of two are set, the first one applies. "": the
// launcher sets no such variable.
inline constexpr RankVariables kRankVariables[] = {
    {"TRAINYARD_RANK", "TRAINYARD_RANK", "TRAINYARD_RANKS", "TRAINYARD_LOCAL_RANK",
     "TRAINYARD_LOCAL_RANKS"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    // PMIx passes the number of ranks only through its library.
    {"PMIx", "PMIX_RANK", "", "", "", true},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false, true},
};

}  // namespace trainyard
