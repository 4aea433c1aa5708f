// TLS 1.3 between ranks, with the group's secret as the pre-shared key: no certificates, and fresh keys for every
// connection, so that who learns the secret later cannot read what went before.
//
// OpenSSL is loaded when the first group asks for encryption, where the machine has it: programs that do not encrypt
// need none. Its functions are declared here by hand (those that have been the same since version 1.1.1), so that
// nothing is needed to build either.
//
// Threads: a key may be used from several; a session is confined to one at a time.
// Errors: unavailable where there is no OpenSSL; what a peer does wrong is `conflict`, as a wrong proof is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::collectives {

enum class TlsSide { connects, accepts };

class TlsSession {
 public:
  struct Impl;
  explicit TlsSession(std::unique_ptr<Impl> inside);
  ~TlsSession();

  // Goes on with the handshake; true when it is over.
  Result<bool> greet();
  bool wants_to_write() const;
  // As recv and send: bytes, 0 when the peer has closed, -1 with errno.
  ssize_t receive(std::span<std::byte> into);
  ssize_t send(std::span<const std::byte> bytes);

 private:
  std::unique_ptr<Impl> impl_;
};

class TlsKey {
 public:
  struct Impl;
  static Result<std::shared_ptr<const TlsKey>> make(std::string_view secret);
  ~TlsKey();
  // Lifetime: the descriptor stays open, and the key alive, as long as the session.
  std::unique_ptr<TlsSession> session(int descriptor, TlsSide side) const;

 private:
  TlsKey();
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::collectives
