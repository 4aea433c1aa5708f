// Converts the output prefix of mpirun --tag-output to the form of SageMaker's log.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::entry {

// Converts "[1,3]<stdout>:text" to "[1,mpirank:3,algo-2]<stdout>:text"; returns other lines
// unchanged.
std::string prefix_for_log(std::string_view line, const std::vector<std::string>& hosts,
                           int ranks_of_host);

}  // namespace trainyard::entry
