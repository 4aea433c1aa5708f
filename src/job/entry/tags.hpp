// What mpirun --tag-output puts before lines, as SageMaker's log shows it.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::entry {

// "[1,3]<stdout>:text" -> "[1,mpirank:3,algo-2]<stdout>:text"; other lines as they are.
std::string tag_for_log(std::string_view line, const std::vector<std::string>& hosts, int ranks_of_host);

}  // namespace trainyard::entry
