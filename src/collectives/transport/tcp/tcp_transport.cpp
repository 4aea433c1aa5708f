#include "collectives/transport/tcp/tcp_transport.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.hpp"

namespace trainyard::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string describe(int error_number) { return std::generic_category().message(error_number); }

bool would_block(int error_number) { return error_number == EAGAIN || error_number == EWOULDBLOCK; }

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

TcpTransport::TcpTransport(TcpOptions options, std::vector<Socket> sockets)
    : options_(std::move(options)), links_(sockets.size()), progress_at_(SteadyClock::now()) {
  for (size_t i = 0; i < sockets.size(); ++i) links_[i].socket = std::move(sockets[i]);
}

TcpTransport::~TcpTransport() {
  if (failure_) {
    hear_out();
    return;
  }
  const HeaderBytes goodbye = encode(FrameHeader{});
  for (Link& link : links_) {
    // Best effort: a peer that does not hear it sees the connection close.
    if (link.socket && link.outgoing.empty()) {
      (void)::send(link.socket.descriptor(), goodbye.data(), goodbye.size(), MSG_NOSIGNAL);
    }
  }
}

void TcpTransport::hear_out() {
  const auto until = SteadyClock::now() + farewell_max;
  for (auto now = until - farewell_max; now < until; now = SteadyClock::now()) {
    std::vector<pollfd> open;
    for (Link& link : links_) {
      char unread[4096];
      while (link.socket && !link.closed) {
        const ssize_t got = ::recv(link.socket.descriptor(), unread, sizeof unread, 0);
        if (got < 0 && would_block(errno)) break;
        if (got == 0 || (got < 0 && errno != EINTR)) link.closed = true;
        if (SteadyClock::now() >= until) return;
      }
      if (link.socket && !link.closed) open.push_back({link.socket.descriptor(), POLLIN, 0});
    }
    if (open.empty()) return;
    (void)::poll(open.data(), open.size(), int(std::chrono::ceil<Duration>(until - now).count()));
  }
}

std::string TcpTransport::name(int rank) const {
  const Endpoint& endpoint = options_.endpoints[size_t(rank)];
  return "rank " + std::to_string(rank) + " (" + endpoint.host + ":" + std::to_string(endpoint.port) + ")";
}

void TcpTransport::send(int peer, Tag tag, std::span<const std::byte> bytes) {
  CHECK(peer >= 0 && peer < size() && peer != rank(), "messages go to another rank");
  links_[size_t(peer)].outgoing.push_back({encode({FrameKind::data, tag, bytes.size()}), bytes});
  progress_at_ = SteadyClock::now();
}

void TcpTransport::receive(int peer, Tag tag, std::span<std::byte> bytes) {
  CHECK(peer >= 0 && peer < size() && peer != rank(), "messages come from another rank");
  links_[size_t(peer)].expected.push_back({tag, bytes});
  progress_at_ = SteadyClock::now();
}

Result<bool> TcpTransport::advance() {
  if (failure_) return *failure_;
  // Every link is looked at before anyone is blamed: where several peers are gone, one may know who was
  // first.
  std::vector<Fault> faults;
  bool done = true;
  for (int peer = 0; peer < size(); ++peer) {
    const Link& link = links_[size_t(peer)];
    if (peer == rank()) continue;
    auto fault = pull(peer);
    if (!fault && (fault = push(peer))) {
      // Who closed on us may have said why just before.
      if (auto last_words = pull(peer)) fault = std::move(last_words);
    }
    if (fault) faults.push_back(*std::move(fault));
    done = done && link.outgoing.empty() && link.expected.empty();
  }
  if (faults.empty()) return done;
  const auto told = std::find_if(faults.begin(), faults.end(), [](const Fault& fault) { return fault.told; });
  if (told != faults.end()) return fail(told->error, told->rank);
  Error error = faults[0].error;
  for (size_t i = 1; i < faults.size(); ++i) error.message += "; " + faults[i].error.message;
  return fail(std::move(error), faults[0].rank);
}

std::optional<TcpTransport::Fault> TcpTransport::pull(int peer) {
  Link& link = links_[size_t(peer)];
  while (!link.closed && !holds_unwanted_data(link)) {
    // Where the next bytes belong: in the header, in a control frame's text, or in the caller's buffer.
    char text[control_payload_bytes_max];
    std::span<std::byte> into;
    if (!link.frame) {
      into = std::span(link.header).subspan(link.header_received);
    } else if (link.frame->kind == FrameKind::data) {
      if (auto fault = compare(peer)) return fault;
      into = link.expected.front().bytes.subspan(link.expected.front().received);
    } else {
      into = std::as_writable_bytes(std::span(text, link.frame->length - link.control.size()));
    }
    const ssize_t got = ::recv(link.socket.descriptor(), into.data(), into.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) break;
    if (got < 0) return gone(peer, describe(errno));
    if (got == 0) {
      link.closed = true;
      if (!link.left) return gone(peer, "it closed the connection");
      break;
    }
    progress_at_ = SteadyClock::now();

    if (!link.frame) {
      link.header_received += size_t(got);
      if (link.header_received < frame_header_bytes) continue;
      auto header = decode_header(link.header);
      if (!header) return Fault{peer, std::move(header).error().in(name(peer)), false};
      link.header_received = 0;
      link.frame = *header;
    } else if (link.frame->kind == FrameKind::data) {
      link.expected.front().received += size_t(got);
    } else {
      link.control.append(text, size_t(got));
    }

    // A frame that is complete (perhaps with its header: goodbye has no payload) is dealt with.
    if (link.frame->kind == FrameKind::data) {
      if (link.expected.empty()) break;
      const Expected& expected = link.expected.front();
      if (expected.received == expected.bytes.size()) {
        link.expected.pop_front();
        link.frame.reset();
      }
    } else if (link.control.size() == link.frame->length) {
      if (auto fault = control_frame(peer)) return fault;
    }
  }
  if (link.left && !link.expected.empty() && !link.frame)
    return gone(peer, "it has left, but is still needed");
  return std::nullopt;
}

std::optional<TcpTransport::Fault> TcpTransport::compare(int peer) const {
  const Link& link = links_[size_t(peer)];
  const Expected& expected = link.expected.front();
  if (link.frame->tag == expected.tag && link.frame->length == expected.bytes.size()) return std::nullopt;
  return Fault{peer,
               conflict(name(peer) + " is in its operation " + std::to_string(link.frame->tag.operation) +
                        " with " + std::to_string(link.frame->length) + " bytes, while " + name(rank()) +
                        " is in operation " + std::to_string(expected.tag.operation) + " and waits for " +
                        std::to_string(expected.bytes.size()) +
                        ": all ranks must call the same operations in the same order"),
               false};
}

std::optional<TcpTransport::Fault> TcpTransport::control_frame(int peer) {
  Link& link = links_[size_t(peer)];
  const FrameKind kind = link.frame->kind;
  const std::string payload = std::exchange(link.control, {});
  link.frame.reset();
  if (kind == FrameKind::goodbye) {
    link.left = true;
    return std::nullopt;
  }
  if (kind == FrameKind::hello) return Fault{peer, corrupt(name(peer) + ": a second hello"), false};
  auto failed = decode_failed(payload);
  if (!failed) return Fault{peer, std::move(failed).error().in(name(peer)), false};
  if (failed->rank >= uint32_t(size()))
    return Fault{peer, corrupt(name(peer) + " blames a rank that is not"), false};
  return Fault{int(failed->rank), unavailable(failed->why + " (said " + name(peer) + ")"), true};
}

std::optional<TcpTransport::Fault> TcpTransport::push(int peer) {
  Link& link = links_[size_t(peer)];
  while (!link.outgoing.empty()) {
    if (link.left || link.closed) return gone(peer, "it has left, but is still needed");
    Outgoing& frame = link.outgoing.front();
    iovec parts[2];
    int count = 0;
    if (frame.sent < frame_header_bytes) {
      parts[count++] = {frame.header.data() + frame.sent, frame_header_bytes - frame.sent};
    }
    const size_t payload_sent = frame.sent > frame_header_bytes ? frame.sent - frame_header_bytes : 0;
    parts[count++] = {const_cast<std::byte*>(frame.payload.data()) + payload_sent,
                      frame.payload.size() - payload_sent};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = size_t(count);
    const ssize_t sent = ::sendmsg(link.socket.descriptor(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && would_block(errno)) break;
    if (sent < 0) return gone(peer, describe(errno));
    progress_at_ = SteadyClock::now();
    frame.sent += size_t(sent);
    if (frame.sent == frame_header_bytes + frame.payload.size()) link.outgoing.pop_front();
  }
  return std::nullopt;
}

TcpTransport::Fault TcpTransport::gone(int peer, std::string why) const {
  return {peer, unavailable(name(peer) + " is gone: " + std::move(why)), false};
}

Result<void> TcpTransport::wait() {
  if (failure_) return *failure_;
  std::vector<pollfd> waited;
  for (const Link& link : links_) {
    if (!link.socket || link.closed) continue;
    const int events = (holds_unwanted_data(link) ? 0 : POLLIN) | (link.outgoing.empty() ? 0 : POLLOUT);
    if (events != 0) waited.push_back({link.socket.descriptor(), short(events), 0});
  }
  const int ready = ::poll(waited.data(), waited.size(), int(TcpOptions::cancel_check_interval.count()));
  if (ready < 0 && errno != EINTR) return fail(from_errno("poll"), rank());
  if (ready > 0) return ok();

  if (options_.cancelled && options_.cancelled()) {
    return fail(cancelled(name(rank()) + " was told to stop"), rank());
  }
  if (SteadyClock::now() - progress_at_ < options_.silence_max) return ok();
  std::string silent;
  int guilty = rank();
  for (int peer = 0; peer < size(); ++peer) {
    const Link& link = links_[size_t(peer)];
    if (link.expected.empty() && link.outgoing.empty()) continue;
    silent += (silent.empty() ? "" : ", ") + name(peer);
    guilty = peer;
  }
  return fail(
      unavailable("nothing from " + silent + " for " + std::to_string(options_.silence_max.count()) + " ms"),
      guilty);
}

void TcpTransport::abandon(std::string_view why) {
  if (!failure_) fail(unavailable(name(rank()) + ": " + std::string(why)), rank());
}

Error TcpTransport::fail(Error error, int guilty) {
  failure_ = error;
  const std::string last_words = encode(Failed{uint32_t(guilty), error.message});
  for (Link& link : links_) {
    if (!link.socket) continue;
    // In the middle of a data frame there is no room for another; then the closing must do.
    if (link.outgoing.empty() || link.outgoing.front().sent == 0) {
      (void)::send(link.socket.descriptor(), last_words.data(), last_words.size(), MSG_NOSIGNAL);
    }
    ::shutdown(link.socket.descriptor(), SHUT_WR);
    link.outgoing.clear();
    link.expected.clear();
  }
  return error;
}

}  // namespace trainyard::collectives
