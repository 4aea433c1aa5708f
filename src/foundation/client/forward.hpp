// Forwards a request to another server: signed with this server's keys for it, its body and its
// answer streamed.
//
// Threads: a Forwarder is callable from anywhere; each call blocks its thread and uses a connection
// of its own, which the next one reuses. Errors: unavailable (that server does not answer), denied
// (its certificate), and those of the callbacks.
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

// Another server, and our keys for it.
struct Remote {
  std::string endpoint;
  signing::Keys keys;
  std::string ca_bundle;        // PEM file; "" = the system's
  Duration connect_limit = 5s;  // a lost region is noticed before its client's own timeout
  Duration idle_limit = 60s;    // without a byte within this time the request ends
};

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Passed {
  std::string method;
  std::string target;  // path and query in their final form: encoded, without the former signature
  Fields headers;      // headers for the server, without those of signature and connection
  signing::Scope scope;
  // of the body, or UNSIGNED-PAYLOAD, or STREAMING-UNSIGNED-PAYLOAD-TRAILER
  std::string payload_sha256;
  std::optional<uint64_t> body_bytes;  // unset, with `read`: chunked
  // Reads the next bytes of the body; 0 at its end. Empty: without a body.
  std::function<Result<size_t>(std::span<char>)> read;
};

// Receives the answer: its head once, then its body piece by piece.
struct Receiver {
  std::function<Result<void>(int status, const Fields& headers)> start;
  std::function<Result<void>(std::span<const char>)> write;
};

class Forwarder {
 public:
  explicit Forwarder(Clock& clock);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  // Errors before `start` was called can be sent to the client; after that its answer is broken
  // off.
  Result<void> pass(const Remote& remote, const Passed& request, const Receiver& receiver);

 private:
  struct Handles;
  Clock& clock_;
  std::unique_ptr<Handles> handles_;
};

// Returns the request's headers to forward: those of the signature, the framing and the connection
// are made again.
Fields headers_to_pass(const Fields& headers);
// Likewise for an answer's header.
bool is_passed_back(const std::string& header);

}  // namespace trainyard::client
