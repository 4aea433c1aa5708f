// Turns the results of calls of XGBoost's C interface into values.
//
// Threads: the library keeps the last error of each thread. Errors: invalid, with the first line of
// the library's message, without its time and source line.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::boosting {

// "[09:45:00] ../src/objective/x.cu:39: Check failed: a: label must be in [0,1]\nStack trace: .."
// -> "Check failed: a: label must be in [0,1]"
std::string plain_library_message(std::string_view message);

// The detail of errors of the library.
enum class LibraryFault { call };

// Requires: a call on this thread returned `code`.
Result<void> library_result(int code);

}  // namespace trainyard::boosting
