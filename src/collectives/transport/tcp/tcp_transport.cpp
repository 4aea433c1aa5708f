#include "collectives/transport/tcp/tcp_transport.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string describe(int error_number) { return std::generic_category().message(error_number); }

// About what a reply over loopback takes, as looks of a microsecond each.
constexpr int idle_looks_without_yielding = 30;
constexpr int idle_looks_max = 200;

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
  if (endpoint.host.empty()) return "rank " + std::to_string(rank);
  return "rank " + std::to_string(rank) + " (" + endpoint.host + ":" + std::to_string(endpoint.port) + ")";
}

void TcpTransport::send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) {
  if (failure_) return;
  for (const int peer : peers) {
    CHECK(peer >= 0 && peer < size() && peer != rank(), "messages go to another rank");
    Link& link = links_[size_t(peer)];
    link.outgoing.push_back({encode({FrameKind::data, tag, bytes.size()}), bytes});
    ++sends_open_;
    busy_.push_back(peer);
    // Small messages go at once; what does not, and what is wrong, is found by advance().
    if (link.outgoing.size() == 1) (void)push(peer);
  }
}

void TcpTransport::take(int peer, Tag tag, std::span<std::byte> into) {
  ++takes_open_;
  expect(peer, {tag, into, false});
}

void TcpTransport::receive(int peer, Tag tag, std::span<std::byte> room) { expect(peer, {tag, room, true}); }

void TcpTransport::release(int peer) { links_[size_t(peer)].arrived = nullptr; }

void TcpTransport::expect(int peer, Expected expected) {
  CHECK(peer >= 0 && peer < size() && peer != rank(), "messages come from another rank");
  if (failure_) return;
  // What we waited for before was not late: patience begins when a wait does.
  if (busy_.empty()) progressed();
  busy_.push_back(peer);
  links_[size_t(peer)].expected.push_back(expected);
}

Result<void> TcpTransport::advance() {
  if (failure_) return *failure_;
  // Every link is looked at before anyone is blamed: where several peers are gone, one may know who was
  // first.
  std::vector<Fault> faults;
  std::sort(busy_.begin(), busy_.end());
  busy_.erase(std::unique(busy_.begin(), busy_.end()), busy_.end());
  size_t still = 0;
  for (size_t i = 0; i < busy_.size(); ++i) {
    const int peer = busy_[i];
    auto fault = pull(peer);
    if (!fault && (fault = push(peer))) {
      // Who closed on us may have said why just before.
      if (auto last_words = pull(peer)) fault = std::move(last_words);
    }
    if (fault) faults.push_back(*std::move(fault));
    const Link& link = links_[size_t(peer)];
    if (link.readable || !link.outgoing.empty() || !link.expected.empty()) busy_[still++] = peer;
  }
  busy_.resize(still);
  if (faults.empty()) return ok();
  return blame(std::move(faults));
}

Error TcpTransport::blame(std::vector<Fault> faults) {
  const auto told = std::find_if(faults.begin(), faults.end(), [](const Fault& fault) { return fault.told; });
  if (told != faults.end()) return fail(told->error, told->rank);
  Error error = faults[0].error;
  for (size_t i = 1; i < faults.size(); ++i) error.message += "; " + faults[i].error.message;
  return fail(std::move(error), faults[0].rank);
}

void TcpTransport::finish_expected(Link& link) {
  const Expected& expected = link.expected.front();
  if (expected.kept) {
    link.arrived = expected.bytes.data();
  } else {
    --takes_open_;
  }
  link.expected.pop_front();
  link.frame.reset();
}

std::optional<TcpTransport::Fault> TcpTransport::pull(int peer) {
  Link& link = links_[size_t(peer)];
  link.readable = false;
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
    progressed();
    idle_looks_ = 0;

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
        finish_expected(link);
        if (link.expected.empty()) break;  // what comes next is read when it is waited for
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
               other_operation(peer, link.frame->tag.operation, link.frame->length, expected.tag.operation,
                               expected.bytes.size()),
               false};
}

Error TcpTransport::other_operation(int peer, uint64_t theirs, uint64_t their_bytes, uint64_t ours,
                                    uint64_t our_bytes) const {
  return conflict(name(peer) + " is in its operation " + std::to_string(theirs) + " with " +
                  std::to_string(their_bytes) + " bytes, while " + name(rank()) + " is in operation " +
                  std::to_string(ours) + " and waits for " + std::to_string(our_bytes) +
                  ": all ranks must call the same operations in the same order");
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
    progressed();
    idle_looks_ = 0;
    frame.sent += size_t(sent);
    if (frame.sent == frame_header_bytes + frame.payload.size()) {
      link.outgoing.pop_front();
      --sends_open_;
    }
  }
  return std::nullopt;
}

TcpTransport::Fault TcpTransport::gone(int peer, std::string why) const {
  return {peer, unavailable(name(peer) + " is gone: " + std::move(why)), false};
}

Result<void> TcpTransport::wait() {
  // A message on its way between two cores needs a few microseconds, a sleeping process many: look a while
  // before sleeping, but give the core to whom we may be waiting for.
  if (idle_looks_ < idle_looks_max) {
    ++idle_looks_;
    if (idle_looks_ > idle_looks_without_yielding) ::sched_yield();
    return look(0ms);
  }
  TRY(look(TcpOptions::cancel_check_interval));
  TRY(check_cancelled());
  std::vector<int> waited_for;
  for (int peer = 0; peer < size(); ++peer) {
    const Link& link = links_[size_t(peer)];
    if (!link.expected.empty() || !link.outgoing.empty()) waited_for.push_back(peer);
  }
  return check_patience(waited_for);
}

Result<void> TcpTransport::check_cancelled() {
  if (!options_.cancelled || !options_.cancelled()) return ok();
  return fail(cancelled(name(rank()) + " was told to stop"), rank());
}

bool TcpTransport::has_readable() const {
  return std::any_of(links_.begin(), links_.end(), [](const Link& link) { return link.readable; });
}

std::vector<int> TcpTransport::hosts() const {
  std::vector<int> hosts;
  for (int rank = 0; rank < size(); ++rank) hosts.push_back(rank);
  return hosts;
}

Result<std::string> TcpTransport::offer() {
  const Endpoint own{options_.endpoints[size_t(rank())].host, 0};
  offered_ = TRY(listen_at(own, size()).in("listening for a part of the group"));
  return own.host + " " + std::to_string(TRY(port_of(offered_)));
}

Result<std::unique_ptr<Transport>> TcpTransport::meet(const std::vector<int>& members,
                                                      const std::vector<std::string>& offers, uint64_t key) {
  return std::unique_ptr<Transport>(TRY(meet_over_tcp(members, offers, key)));
}

Result<std::unique_ptr<TcpTransport>> TcpTransport::meet_over_tcp(const std::vector<int>& members,
                                                                  const std::vector<std::string>& offers,
                                                                  uint64_t key) {
  TcpOptions options = options_;
  options.endpoints.clear();
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] == rank()) options.rank = int(i);
    const std::string& offer = offers[size_t(members[i])];
    const size_t space = offer.rfind(' ');
    const auto port = space == std::string::npos ? Result<int64_t>(corrupt("no port"))
                                                 : parse_int(std::string_view(offer).substr(space + 1));
    if (!port || *port <= 0 || *port > 65535) return corrupt(name(members[i]) + " offers no endpoint");
    options.endpoints.push_back({offer.substr(0, space), uint16_t(*port)});
  }
  // Other groups of the same job must not be met by mistake.
  const Digest secret = hmac_sha256(options_.shared_value, "part " + std::to_string(key));
  options.shared_value.assign(secret.begin(), secret.end());
  return connect_tcp(std::move(options), std::exchange(offered_, {}));
}

Result<void> TcpTransport::check_patience(std::span<const int> waited_for) {
  if (failure_) return *failure_;
  if (SteadyClock::now() - progress_at_ < options_.silence_max) return ok();
  std::string silent;
  for (const int peer : waited_for) silent += (silent.empty() ? "" : ", ") + name(peer);
  return fail(
      unavailable("nothing from " + silent + " for " + std::to_string(options_.silence_max.count()) + " ms"),
      waited_for.empty() ? rank() : waited_for.back());
}

Result<void> TcpTransport::look(Duration at_most) {
  if (failure_) return *failure_;
  std::vector<pollfd> waited;
  std::vector<int> peers;
  for (int peer = 0; peer < size(); ++peer) {
    const Link& link = links_[size_t(peer)];
    if (!link.socket || link.closed) continue;
    const int events = (holds_unwanted_data(link) ? 0 : POLLIN) | (link.outgoing.empty() ? 0 : POLLOUT);
    if (events == 0) continue;
    waited.push_back({link.socket.descriptor(), short(events), 0});
    peers.push_back(peer);
  }
  const int ready = ::poll(waited.data(), waited.size(), int(at_most.count()));
  if (ready < 0 && errno != EINTR) return fail(from_errno("poll"), rank());
  for (size_t i = 0; i < waited.size() && ready > 0; ++i) {
    if (waited[i].revents == 0) continue;
    links_[size_t(peers[i])].readable = true;
    busy_.push_back(peers[i]);
    idle_looks_ = 0;
  }
  return ok();
}

void TcpTransport::abandon(std::string_view why) {
  if (!failure_) fail(unavailable(name(rank()) + ": " + std::string(why)), rank());
}

Error TcpTransport::fail(Error error, int guilty) {
  if (failure_) return *failure_;
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
    link.arrived = nullptr;
  }
  return error;
}

}  // namespace trainyard::collectives
