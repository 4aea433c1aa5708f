// Turns the results of calls of XGBoost's C interface into values.
//
// Threads: any; the library stores the last error of each thread. Errors: invalid, with the first
// line of the library's message, without its time and source line.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::boosting {

// Removes the time, the source line and the stack trace from a message:
// "[09:45:00] ../src/objective/x.cu:39: Check failed: label must be in [0,1]\nStack trace: .."
// -> "Check failed: label must be in [0,1]"
std::string plain_library_message(std::string_view message);

// The detail (Error::detail) of errors that the library reports.
enum class LibraryFault { call };

// Converts the result of a call. Requires: the last call on this thread returned `code`.
Result<void> library_result(int code);

}  // namespace trainyard::boosting
