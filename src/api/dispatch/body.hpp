// Body reads the body of a streamed request. It removes transfer coding and aws-chunked framing,
// and verifies what the client signed (the hash of the bytes, the signatures of the chunks) before
// it reports the end.
//
// Threads: confined to the stream's thread. Lifetime: the stream outlives it.
// Errors: denied (differs from what was signed), invalid (framing, length), exhausted (a limit),
// and the connection's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "auth/auth.hpp"
#include "net/http_server.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api {

class Body {
 public:
  virtual ~Body() = default;
  // Errors: invalid (an unknown x-amz-content-sha256).
  static Result<std::unique_ptr<Body>> open(net::Stream& stream, const Signer& signer);

  virtual Result<size_t> read(std::span<char> buffer) = 0;
  // Returns the size without framing, if the head has it.
  virtual std::optional<uint64_t> bytes() const = 0;
  virtual const std::map<std::string, std::string>& trailers() const = 0;
  // Returns the failure for the client, if read() has failed because of the body.
  virtual const std::optional<Failure>& failure() const = 0;

  Result<std::string> read_whole(size_t bytes_max);
};

// Reads a whole body without framing. Errors: exhausted (more than bytes_max).
Result<std::string> read_whole(net::Stream& stream, size_t bytes_max);

// Removes "aws-chunked" from Content-Encoding: it is not a property of the object.
std::vector<std::pair<std::string, std::string>> without_chunked_encoding(
    const std::vector<std::pair<std::string, std::string>>& headers);

}  // namespace trainyard::api
