// Checks a submission for what the server would reject only after local files were uploaded.
//
// Threads: pure. Errors: invalid, naming the value and, where there is one, the value that was
// probably meant.
#pragma once

#include <string>
#include <vector>

#include "cli/request_file.hpp"

namespace trainyard::cli {

// Checks that the instance types of the request exist.
Result<void> check_instance_types(const Json& request);

// Checks that the program which the request runs from the channel of `upload` is one of the files.
// `keys`: of the files, below the upload's prefix.
Result<void> check_program(const Json& request, const Upload& upload,
                           const std::vector<std::string>& keys);

}  // namespace trainyard::cli
