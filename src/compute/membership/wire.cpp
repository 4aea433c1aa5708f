#include "membership/wire.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace trainyard::membership {
namespace {

constexpr size_t read_bytes = 64 << 10;

}  // namespace

Wire::Wire(collectives::Socket socket, std::string secret, Side side)
    : socket_(std::move(socket)), secret_("elastic " + secret), side_(side) {
  if (side_ == Side::member) hello();
}

void Wire::hello() {
  // Not a rank: which side says it, so that no proof serves for the other one.
  ours_.rank = side_ == Side::service ? 0 : 1;
  ours_.ranks = 2;
  CHECK(::getrandom(ours_.nonce.data(), ours_.nonce.size(), 0) == ssize_t(ours_.nonce.size()),
        "the kernel has 16 random bytes");
  outgoing_ += encode(ours_);
}

void Wire::send(const Message& message) {
  const std::string payload = encode(message);
  const collectives::HeaderBytes header =
      collectives::encode(collectives::FrameHeader{collectives::FrameKind::data, {}, payload.size()});
  outgoing_.append(reinterpret_cast<const char*>(header.data()), header.size());
  outgoing_ += payload;
}

Result<std::vector<Message>> Wire::look() {
  TRY(write());
  TRY(read());
  std::vector<Message> messages;
  for (;;) {
    auto message = TRY(next());
    if (!message) break;
    messages.push_back(std::move(*message));
  }
  TRY(write());
  return messages;
}

Result<void> Wire::read() {
  char buffer[read_bytes];
  while (incoming_.size() < collectives::frame_header_bytes + message_bytes_max) {
    const ssize_t got = ::recv(socket_.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ok();
    if (got < 0) return from_errno("the connection broke");
    if (got == 0) {
      if (incoming_.empty()) return unavailable("it closed the connection");
      return ok();  // what is whole is heard first; the next look finds the end
    }
    incoming_.append(buffer, size_t(got));
  }
  return ok();
}

Result<void> Wire::write() {
  while (!outgoing_.empty()) {
    const ssize_t sent =
        ::send(socket_.descriptor(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) return from_errno("the connection broke");
    outgoing_.erase(0, size_t(sent));
  }
  if (outgoing_.size() > outgoing_bytes_max) return exhausted("it does not read what it is told");
  return ok();
}

Result<std::optional<Message>> Wire::next() {
  for (;;) {
    if (incoming_.size() < collectives::frame_header_bytes) return std::optional<Message>{};
    collectives::HeaderBytes bytes;
    std::memcpy(bytes.data(), incoming_.data(), bytes.size());
    const collectives::FrameHeader header = TRY(collectives::decode_header(bytes));
    if (header.length > message_bytes_max) return corrupt("a message that is too long");
    if (incoming_.size() < collectives::frame_header_bytes + header.length) return std::optional<Message>{};
    const std::string payload = incoming_.substr(collectives::frame_header_bytes, size_t(header.length));
    incoming_.erase(0, collectives::frame_header_bytes + size_t(header.length));
    if (!theirs_) {
      if (header.kind != collectives::FrameKind::hello) return corrupt("a frame that is not due");
      theirs_ = TRY(collectives::decode_hello(payload));
      if (theirs_->ranks != 2 || theirs_->rank != (side_ == Side::service ? 1u : 0u))
        return corrupt("it is no peer of ours");
      if (side_ == Side::service) hello();
      outgoing_ += collectives::encode_proof(collectives::prove(secret_, ours_, *theirs_));
    } else if (!proved_) {
      if (header.kind != collectives::FrameKind::proof) return corrupt("a frame that is not due");
      const Digest proof = TRY(collectives::decode_proof(payload));
      if (!equal_in_constant_time(proof, collectives::prove(secret_, *theirs_, ours_)))
        return conflict("it belongs to another training: it does not know this one's secret");
      proved_ = true;
    } else {
      if (header.kind != collectives::FrameKind::data) return corrupt("a frame that is not due");
      return std::optional(TRY(decode_message(payload)));
    }
  }
}

void watch_for_death(int descriptor) {
  const auto set = [descriptor](int level, int name, int value) {
    (void)::setsockopt(descriptor, level, name, &value, sizeof value);
  };
  static_assert(collectives::TcpOptions::dead_peer_max == 20s);  // 5 s of silence, then five probes
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, int(collectives::TcpOptions::dead_peer_max.count()));
}

Result<std::string> own_address_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[NI_MAXHOST];
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return from_errno("getsockname");
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return unavailable("our own address has no text");
  return std::string(text);
}

}  // namespace trainyard::membership
