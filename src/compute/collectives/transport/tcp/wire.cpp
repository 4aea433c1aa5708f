#include "collectives/transport/tcp/wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

namespace trainyard::collectives {

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Wire::encrypt(const TlsKey& key, TlsSide side) {
  session_ = key.session(socket_.descriptor(), side);
}

Result<bool> Wire::handshake() {
  if (!session_) return true;
  return session_->handshake();
}

ssize_t Wire::receive(std::span<std::byte> into) {
  if (session_) return session_->receive(into);
  return ::recv(socket_.descriptor(), into.data(), into.size(), 0);
}

ssize_t Wire::send(std::span<const iovec> parts) {
  if (!session_) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    return ::sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL);
  }
  // Writes a record for each part. So a reader that stops after a frame leaves no bytes inside the
  // session, where poll could not see them.
  ssize_t all = 0;
  for (const iovec& part : parts) {
    size_t done = 0;
    while (done < part.iov_len) {
      const ssize_t sent = session_->send(
          {static_cast<const std::byte*>(part.iov_base) + done, part.iov_len - done});
      if (sent < 0) return all > 0 ? all : sent;
      done += size_t(sent);
      all += sent;
    }
  }
  return all;
}

ssize_t Wire::send(const void* bytes, size_t size) {
  const iovec part{const_cast<void*>(bytes), size};
  return send(std::span(&part, 1));
}

void Wire::end() { ::shutdown(socket_.descriptor(), SHUT_WR); }

}  // namespace trainyard::collectives
