#include "membership/wire.hpp"

#include <netdb.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "collectives/transport/tcp/sockets.hpp"

namespace trainyard::membership {
namespace {

constexpr size_t kReadBytes = 64 << 10;

Error out_of_order(const collectives::FrameHeader& header, const std::string& expected) {
  return corrupt("a frame of kind " + std::to_string(int(header.kind)) +
                 " is out of order: expected " + expected);
}

}  // namespace

void wake(const collectives::Socket& event) {
  const uint64_t one = 1;
  (void)!::write(event.descriptor(), &one, sizeof one);
}

void clear(const collectives::Socket& event) {
  uint64_t count = 0;
  (void)!::read(event.descriptor(), &count, sizeof count);
}

Wire::Wire(collectives::Socket socket, std::string secret, Side side)
    : socket_(std::move(socket)), secret_("elastic " + secret), side_(side) {
  if (side_ == Side::member) send_hello();
}

void Wire::send_hello() {
  // Identifies the side instead of a rank, so that a proof of one side is invalid for the other.
  own_hello_.rank = side_ == Side::service ? 0 : 1;
  own_hello_.ranks = 2;
  CHECK(::getrandom(own_hello_.nonce.data(), own_hello_.nonce.size(), 0) ==
            ssize_t(own_hello_.nonce.size()),
        "getrandom returns 16 bytes at once");
  outgoing_ += encode(own_hello_);
}

void Wire::send(const Message& message) {
  const std::string payload = encode(message);
  const collectives::HeaderBytes header = collectives::encode(
      collectives::FrameHeader{collectives::FrameKind::data, {}, payload.size()});
  outgoing_.append(reinterpret_cast<const char*>(header.data()), header.size());
  outgoing_ += payload;
}

Result<std::vector<Message>> Wire::exchange() {
  TRY(write());
  TRY(read());
  std::vector<Message> messages;
  for (;;) {
    auto message = TRY(next());
    if (!message) break;
    messages.push_back(std::move(*message));
  }
  // Complete messages are handled first. The rest of `incoming_` can no longer be completed.
  if (ended_ && messages.empty()) return unavailable("connection closed by peer");
  TRY(write());
  return messages;
}

Result<void> Wire::read() {
  char buffer[kReadBytes];
  while (incoming_.size() < collectives::kFrameHeaderBytes + kMessageBytesMax) {
    const ssize_t got = ::recv(socket_.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && collectives::would_block(errno)) return ok();
    if (got < 0) return from_errno("using the connection");
    if (got == 0) {
      ended_ = true;
      return ok();
    }
    incoming_.append(buffer, size_t(got));
  }
  return ok();
}

Result<void> Wire::write() {
  while (!outgoing_.empty()) {
    const ssize_t sent = ::send(socket_.descriptor(), outgoing_.data(), outgoing_.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && collectives::would_block(errno)) break;
    if (sent < 0) return from_errno("using the connection");
    outgoing_.erase(0, size_t(sent));
  }
  if (outgoing_.size() > kOutgoingBytesMax)
    return exhausted("the peer does not read its messages: more than " +
                     std::to_string(kOutgoingBytesMax) + " bytes wait for it");
  return ok();
}

Result<std::optional<Message>> Wire::next() {
  for (;;) {
    if (incoming_.size() < collectives::kFrameHeaderBytes) return std::optional<Message>{};
    collectives::HeaderBytes bytes;
    std::memcpy(bytes.data(), incoming_.data(), bytes.size());
    const collectives::FrameHeader header = TRY(collectives::decode_header(bytes));
    if (header.length > kMessageBytesMax)
      return corrupt("message of " + std::to_string(header.length) + " bytes exceeds the maximum");
    if (incoming_.size() < collectives::kFrameHeaderBytes + header.length)
      return std::optional<Message>{};
    const std::string payload =
        incoming_.substr(collectives::kFrameHeaderBytes, size_t(header.length));
    incoming_.erase(0, collectives::kFrameHeaderBytes + size_t(header.length));
    if (!peer_hello_) {
      if (header.kind != collectives::FrameKind::hello) return out_of_order(header, "a hello");
      peer_hello_ = TRY(collectives::decode_hello(payload));
      if (peer_hello_->ranks != 2 || peer_hello_->rank != (side_ == Side::service ? 1u : 0u))
        return corrupt("unexpected hello: the peer is on the same side");
      if (side_ == Side::service) send_hello();
      outgoing_ += collectives::encode_proof(collectives::prove(secret_, own_hello_, *peer_hello_));
    } else if (!proved_) {
      if (header.kind != collectives::FrameKind::proof) return out_of_order(header, "a proof");
      const Digest proof = TRY(collectives::decode_proof(payload));
      if (!equal_in_constant_time(proof, collectives::prove(secret_, *peer_hello_, own_hello_)))
        return conflict("the peer has another secret: it belongs to another training");
      proved_ = true;
    } else {
      if (header.kind != collectives::FrameKind::data) return out_of_order(header, "data");
      return std::optional(TRY(decode_message(payload)));
    }
  }
}

Result<std::string> own_address_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[NI_MAXHOST];
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return from_errno("reading the local address of a connection");
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return unavailable("formatting the local address failed");
  return std::string(text);
}

}  // namespace trainyard::membership
