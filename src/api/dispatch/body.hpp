// Reads the body of a streamed request: removes transfer coding and aws-chunked framing, and checks the bytes against what
// the client signed (their hash, the chunks' signatures) by the time the end is reported.
//
// Threads: confined to the stream's thread. Lifetime: the stream outlives it.
// Errors: denied (not what was signed), invalid (framing, length), exhausted (past a limit), and the connection's.
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
  // Errors: invalid, for a way to sign bodies that is not known.
  static Result<std::unique_ptr<Body>> open(net::Stream& stream, const Signer& signer);

  virtual Result<size_t> read(std::span<char> buffer) = 0;
  virtual std::optional<uint64_t> bytes() const = 0;
  virtual const std::map<std::string, std::string>& trailers() const = 0;
  // What to tell the client when read() has failed by the body's own fault.
  virtual const std::optional<Failure>& failure() const = 0;

  Result<std::string> read_whole(size_t bytes_max);
};

// A plain one, whole. Errors: exhausted, past bytes_max.
Result<std::string> read_whole(net::Stream& stream, size_t bytes_max);

// The headers as an operation should see them: Content-Encoding without "aws-chunked", which is no property
// of the object.
std::vector<std::pair<std::string, std::string>> without_chunked_encoding(
    const std::vector<std::pair<std::string, std::string>>& headers);

}  // namespace trainyard::api
