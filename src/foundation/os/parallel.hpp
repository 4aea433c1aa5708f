// Calls a function for many indices on several threads at once.
//
// Threads: callable from anywhere; the threads end before the call returns. Errors: the first error
// of the function, after which no further call is started.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.hpp"

namespace trainyard::os {

// Calls work(0) .. work(count - 1) from at most `threads_max` threads, including the calling one.
Result<void> for_each_in_parallel(size_t count, size_t threads_max,
                                  const std::function<Result<void>(size_t)>& work);

}  // namespace trainyard::os
