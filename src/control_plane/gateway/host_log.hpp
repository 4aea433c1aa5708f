// Finds how much a host has written to its log stream.
//
// Threads: callable from anywhere. Errors: those of the logs.
#pragma once

#include "base/result.hpp"
#include "observe/logs.hpp"

namespace trainyard::gateway {

// Creates the stream if a client has removed it while the host runs.
inline Result<uint64_t> stored_bytes_of(observe::Logs& logs, const observe::StreamKey& stream) {
  auto stored = logs.stored_bytes(stream);
  if (stored || stored.error().kind != Kind::not_found) return stored;
  TRY(logs.ensure_stream(stream));
  return uint64_t{0};
}

}  // namespace trainyard::gateway
