// Passing a request on to another server: signed anew with the keys that are held there, its body streamed through, its
// answer as it comes.
//
// Threads: a Forwarder is callable from anywhere; each call blocks its thread and has a connection of its own, kept for the
// next. Errors: unavailable (that server does not answer), denied (its certificate), and whatever the callbacks return.
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

// Where another server is, and who we are there.
struct Remote {
  std::string endpoint;
  signing::Keys keys;
  std::string ca_bundle;        // PEM file; "" = the system's
  Duration connect_limit = 5s;  // a region that is lost is noticed before its client gives up
  Duration idle_limit = 60s;    // no byte for so long ends it
};

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Passed {
  std::string method;
  std::string target;  // path and query as they will be sent: encoded, without a former signature
  Fields headers;      // those that mean something to the server, without signature and connection
  signing::Scope scope;
  std::string payload_sha256;  // of the body, or UNSIGNED-PAYLOAD, or STREAMING-UNSIGNED-PAYLOAD-TRAILER
  std::optional<uint64_t> body_bytes;  // nothing, with `read`: chunked
  // The next bytes of the body; 0 at its end. Empty: there is no body.
  std::function<Result<size_t>(std::span<char>)> read;
};

// Takes the answer: its head once, then its body piece by piece.
struct Receiver {
  std::function<Result<void>(int status, const Fields& headers)> start;
  std::function<Result<void>(std::span<const char>)> write;
};

class Forwarder {
 public:
  explicit Forwarder(Clock& clock);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  // Errors before `start` was called may be told to the client; afterwards its answer is broken off.
  Result<void> pass(const Remote& remote, const Passed& request, const Receiver& receiver);

 private:
  struct Handles;
  Clock& clock_;
  std::unique_ptr<Handles> handles_;
};

// Of a request's headers, those that are passed on: what is signed, framed or about this connection is made anew.
Fields headers_to_pass(const Fields& headers);
// The same of an answer.
bool is_passed_back(const std::string& header);

}  // namespace trainyard::client
