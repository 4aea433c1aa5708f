// Implements the rsh agent, which a launcher starts instead of ssh, and the wrapper around each
// rank. Both are modes of trainyard-entry and report to the entry of their host.
//
// Threads: the caller's. Errors: none; the exit code shows them.
#pragma once

#include <string>
#include <vector>

#include "entry/settings.hpp"

namespace trainyard::entry {

struct MpiRank {
  int rank = 0;
  int local_rank = 0;  // on this host
};
// Reads the rank from the launcher's variables (base/ranks/variables.hpp); 0 for missing variables.
MpiRank mpi_rank_in(const Variables& variables);

// "--start-on HOST WORD..": runs a command line on another host of the gang, as ssh does, and
// returns when it has ended there.
int start_on(const std::vector<std::string>& arguments);

// "--rank PROGRAM ARGUMENT..": runs a rank and keeps its last output, which it reports if the rank
// fails. Ends with the rank's exit code or signal.
int run_rank(const std::vector<std::string>& arguments, const Variables& variables);

}  // namespace trainyard::entry
