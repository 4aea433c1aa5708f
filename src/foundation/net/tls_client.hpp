// TlsClient is the client's end of a TLS 1.3 connection over any transport: its owner passes on the
// bytes between it and the peer.
//
//   encrypt(plain) -> bytes for the peer        decrypt(bytes from the peer) -> plain
//
// Threads: a TlsClient is confined to one at a time; a TlsClients may be used from anywhere.
// Errors: denied (a certificate was rejected), corrupt (the bytes are not TLS, or were changed).
// After an error, only take_output() may be called: it may have an alert for the peer.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::net {

class TlsClient {
 public:
  virtual ~TlsClient() = default;
  // Continues the handshake. Returns true when it is complete; before, the output must be sent and
  // bytes of the peer be fed.
  virtual Result<bool> shake_hands() = 0;
  // Takes bytes of the peer.
  virtual void feed(std::string_view bytes) = 0;
  // Appends what the fed bytes contain. Returns false after the peer's end of the stream. Requires:
  // the handshake is complete.
  virtual Result<bool> decrypt(std::string& plain) = 0;
  // Requires: the handshake is complete.
  virtual Result<void> encrypt(std::string_view plain) = 0;
  // Ends this side's stream.
  virtual void end() = 0;
  // Takes the bytes for the peer.
  virtual std::string take_output() = 0;
};

class TlsClients {
 public:
  virtual ~TlsClients() = default;
  virtual std::unique_ptr<TlsClient> make() const = 0;
};

// `authority`: the PEM of the authority that must have signed the server's certificate; `server`:
// the name or address in it. Errors: invalid, if the authority is not a certificate.
Result<std::unique_ptr<TlsClients>> tls_clients(const std::string& authority,
                                                const std::string& server);

}  // namespace trainyard::net
