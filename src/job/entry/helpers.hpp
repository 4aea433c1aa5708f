// Implements the rsh agent, which a launcher starts instead of ssh, and the wrapper around each
// rank: both are this program again, and report to the entry of their host.
//
// Threads: the caller's one. Errors: none; they show in the exit code.
#pragma once

#include <string>
#include <vector>

#include "entry/settings.hpp"

namespace trainyard::entry {

struct MpiRank {
  int rank = 0;
  int local_rank = 0;  // on this host
};
// Reads the variables of the launcher (base/ranks/variables.hpp); 0 where it sets none.
MpiRank mpi_rank_in(const Variables& variables);

// "--start-on HOST WORD..": runs that line on another host of the gang, as ssh would, until it ends
// there.
int start_on(const std::vector<std::string>& arguments);

// "--rank PROGRAM ARGUMENT..": runs a rank, keeps its last output, and reports it when it fails;
// ends like the rank.
int run_rank(const std::vector<std::string>& arguments, const Variables& variables);

}  // namespace trainyard::entry
