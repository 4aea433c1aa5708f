// Forwards requests to another server. A request is signed again, with this server's keys for the
// other server; its body and its answer are streamed.
//
// Threads: a Forwarder is callable from anywhere. Each call blocks its thread and uses its own
// connection, which later calls reuse. Errors: unavailable (the other server does not answer),
// denied (its certificate), and those of the callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "signing/signing.hpp"

namespace trainyard::client {

// Another server, and this server's keys for it.
struct Remote {
  std::string endpoint;
  signing::Keys keys;
  std::string ca_bundle;        // PEM file; "" = the system's
  Duration connect_limit = 5s;  // a lost region is detected before the client's own timeout
  Duration idle_limit = 60s;    // a request that transfers no byte within this time fails
};

using Fields = std::vector<std::pair<std::string, std::string>>;

struct ForwardedRequest {
  std::string method;
  // path and query in their final form: encoded, without the client's signature
  std::string target;
  Fields headers;  // headers for the server, without those of signature and connection
  signing::Scope scope;
  // SHA-256 of the body, or UNSIGNED-PAYLOAD, or STREAMING-UNSIGNED-PAYLOAD-TRAILER
  std::string payload_sha256;
  std::optional<uint64_t> body_bytes;  // unset although `read` is set: sent chunked
  // Reads the next bytes of the body; returns 0 at its end. Empty: the request has no body.
  std::function<Result<size_t>(std::span<char>)> read;
};

// Receives the answer: `start` is called once with its header, then `write` for each piece of its
// body.
struct Receiver {
  std::function<Result<void>(int status, const Fields& headers)> start;
  std::function<Result<void>(std::span<const char>)> write;
};

class Forwarder {
 public:
  explicit Forwarder(Clock& clock);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  // An error before `start` was called can be sent to the client; after that the caller must abort
  // its answer.
  Result<void> forward(const Remote& remote, const ForwardedRequest& request,
                       const Receiver& receiver);

 private:
  struct Handles;
  Clock& clock_;
  std::unique_ptr<Handles> handles_;
};

// Returns the headers of a request that are forwarded: those of the signature, the framing and the
// connection are made again.
Fields forwarded_headers(const Fields& headers);
// Returns true if this header of an answer is returned to the client.
bool is_returned_header(const std::string& header);

}  // namespace trainyard::client
