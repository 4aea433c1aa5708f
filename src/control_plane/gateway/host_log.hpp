// Reads the state of a host's log stream, which a client may have removed, and appends the server's
// own lines.
//
// Threads: callable from anywhere. Errors: those of the logs.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "observe/logs.hpp"

namespace trainyard::gateway {

// Returns the stored size of the stream. Creates the stream again if a client has removed it while
// the host runs.
inline Result<uint64_t> stored_bytes_of(observe::Logs& logs, const observe::StreamKey& stream) {
  auto stored = logs.stored_bytes(stream);
  if (stored || stored.error().kind != Kind::not_found) return stored;
  TRY(logs.ensure_stream(stream));
  return uint64_t{0};
}

// Returns the number of the host's last batch. The stream was created before the host was started;
// if retention or a client has removed it, creates it again and sets `lost`.
inline Result<uint64_t> last_batch_of(observe::Logs& logs, const observe::StreamKey& stream,
                                      bool& lost) {
  auto batch = logs.last_batch(stream);
  if (batch || batch.error().kind != Kind::not_found) return batch;
  TRY(logs.ensure_stream(stream));
  lost = true;
  return logs.last_batch(stream);
}

// Makes a line of the server, which begins with its name.
inline observe::LogEvent own_line(Instant now, const std::string& text) {
  return {now, now, "trainyard: " + text};
}

// Appends a line of the server, unless the log has reached its limit. Errors are ignored.
inline void append_own_line(observe::Logs& logs, const observe::StreamKey& stream,
                            uint64_t bytes_max, Instant now, const std::string& text) {
  const auto stored = stored_bytes_of(logs, stream);
  if (stored && *stored < bytes_max)
    static_cast<void>(logs.append(stream, {own_line(now, text)}, 0));
}

}  // namespace trainyard::gateway
