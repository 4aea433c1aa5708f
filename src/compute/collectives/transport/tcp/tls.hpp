// Implements TLS 1.3 between ranks, with the secret of the group as the pre-shared key: no
// certificates, and fresh keys for every connection, so that a later disclosure of the secret does
// not decrypt recorded traffic.
//
// OpenSSL is loaded when the first group needs encryption, if the machine has it: programs that do
// not encrypt do not need it. Its functions are declared here by hand (those that have not changed
// since version 1.1.1), so building does not need it either.
//
// Threads: a key may be used from several threads; a session is confined to one at a time.
// Errors: unavailable, if the machine has no OpenSSL; conflict, if the handshake fails, for
// instance because of a wrong secret.
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

  // Continues the handshake. Returns true when it is complete.
  Result<bool> handshake();
  bool wants_to_write() const;
  // Like recv and send: return the number of bytes, 0 when the peer has closed, or -1 with errno.
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
