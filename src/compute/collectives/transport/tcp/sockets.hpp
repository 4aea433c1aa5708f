// Sets the options of sockets between ranks, and classifies the errors of non-blocking sockets.
//
// Threads: plain functions. Errors: an option that the kernel refuses is left at its default.
#pragma once

#include <cerrno>

namespace trainyard::collectives {

// Sends small frames at once, and ends a connection whose peer has not answered for
// TcpOptions::kDeadPeerMax.
void set_link_options(int descriptor);

// Returns true if a call on a non-blocking socket failed only because it would have waited.
inline bool would_block(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK;
}

}  // namespace trainyard::collectives
