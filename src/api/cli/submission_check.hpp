// Checks a submission, before local files are uploaded, for errors that the server would find only
// after that.
//
// Threads: pure. Errors: invalid, naming the value and the nearest valid one.
#pragma once

#include <string>
#include <vector>

#include "cli/request_file.hpp"

namespace trainyard::cli {

// Checks that the instance types of the request exist.
Result<void> check_instance_types(const Json& request);

// Checks that the request's program, if it is in the channel of `upload`, is one of the files.
// `keys`: the files' keys below the upload's prefix.
Result<void> check_program(const Json& request, const Upload& upload,
                           const std::vector<std::string>& keys);

}  // namespace trainyard::cli
