// A Wire is one connection of a link: a socket, and a TLS session when the group is encrypted.
//
// Threads: confined to one at a time. Errors: those of the system calls, in errno.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "collectives/transport/tcp/tls.hpp"

namespace trainyard::collectives {

// Owns a descriptor, which the destructor closes.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

class Wire {
 public:
  Wire() = default;
  explicit Wire(Socket socket) : socket_(std::move(socket)) {}

  // Starts TLS. Both sides call it before anything is sent. Requires: the socket is non-blocking.
  void encrypt(const TlsKey& key, TlsSide side);
  // Continues the TLS handshake. Returns true when frames can be sent. Errors: of
  // TlsSession::handshake.
  Result<bool> handshake();
  bool handshake_wants_write() const { return session_ && session_->wants_to_write(); }

  // Like recv: > 0 bytes, 0 when the peer has closed, -1 with errno. Never blocks.
  ssize_t receive(std::span<std::byte> into);
  // Like sendmsg with MSG_NOSIGNAL: the number of bytes sent, or -1 with errno. After a partial
  // send, the next call must continue with the same byte.
  ssize_t send(std::span<const iovec> parts);
  ssize_t send(const void* bytes, size_t size);
  // Shuts down the sending direction.
  void end();

  int descriptor() const { return socket_.descriptor(); }
  const Socket& socket() const { return socket_; }
  explicit operator bool() const { return bool(socket_); }

 private:
  Socket socket_;
  std::unique_ptr<TlsSession> session_;  // null: not encrypted
};

}  // namespace trainyard::collectives
