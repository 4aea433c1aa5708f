// Tells whether a call on a non-blocking socket failed only because it would have waited.
//
// Threads: a pure function. Errors: none.
#pragma once

#include <cerrno>

namespace trainyard::collectives {

inline bool would_block(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK;
}

}  // namespace trainyard::collectives
