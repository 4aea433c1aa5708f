// Finds how much a host has written to its log stream, which a client may have removed.
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

// Finds the number of the host's last batch. The stream was created before the host was started; if
// retention or a client has removed it, it is created again, and `lost` is set.
inline Result<uint64_t> last_batch_of(observe::Logs& logs, const observe::StreamKey& stream,
                                      bool& lost) {
  auto batch = logs.last_batch(stream);
  if (batch || batch.error().kind != Kind::not_found) return batch;
  TRY(logs.ensure_stream(stream));
  lost = true;
  return logs.last_batch(stream);
}

}  // namespace trainyard::gateway
