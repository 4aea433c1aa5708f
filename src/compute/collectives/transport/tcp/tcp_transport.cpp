#include "collectives/transport/tcp/tcp_transport.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.hpp"
#include "collectives/transport/tcp/addresses.hpp"
#include "collectives/transport/tcp/endpoint_text.hpp"
#include "collectives/transport/tcp/sockets.hpp"

namespace trainyard::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string describe(int error_number) { return std::generic_category().message(error_number); }

// About the time of a reply over loopback, in polls of a microsecond each.
constexpr int kIdlePollsWithoutYielding = 30;
constexpr int kIdlePollsMax = 200;
// When many processes share this core, a yield takes as long as all their time slices; sleeping
// until a wakeup is then better.
constexpr Duration kSocketYieldingMax = 5ms;

// A smaller part is not worth a system call.
constexpr size_t kPartBytesMin = size_t{64} << 10;
// The time after which a rank that is not connected is probed: a hundred times the longest round
// trip.
constexpr Duration kProbeInterval = 1s;
// The operation number of await_all().
constexpr uint64_t kBootstrapOperation = ~uint64_t{2};
// More reads than an hour of reports needs.
constexpr int kUnreadReadsMax = 64;

}  // namespace

TcpTransport::TcpTransport(std::unique_ptr<TcpOptions> options, std::unique_ptr<Contacts> contacts,
                           std::vector<Wire> wires)
    : options_(std::move(options)),
      contacts_(std::move(contacts)),
      links_(wires.size()),
      timeout_(options_->rank, int(links_.size()), options_->peer_timeout, SteadyClock::now()) {
  for (size_t i = 0; i < wires.size(); ++i) {
    links_[i].streams = std::vector<Stream>(size_t(options_->sockets_per_peer));
    links_[i].streams[0].wire = std::move(wires[i]);
  }
}

TcpTransport::~TcpTransport() {
  if (failure_) {
    drain();
    return;
  }
  const HeaderBytes goodbye = encode(FrameHeader{});
  for (Link& link : links_) {
    for (Stream& stream : link.streams) {
      // Unread reports of peers that waited would turn the close into a reset, which may overtake
      // the data of this rank.
      std::byte unread[4096];
      for (int reads = 0; reads < kUnreadReadsMax && stream.wire && !stream.closed; ++reads) {
        if (stream.wire.receive(unread) <= 0) break;
      }
      // Best effort: a peer that does not receive it sees the connection close.
      if (stream.wire && stream.outgoing.empty())
        (void)stream.wire.send(goodbye.data(), goodbye.size());
    }
  }
}

void TcpTransport::drain() {
  const auto until = SteadyClock::now() + kFarewellMax;
  for (auto now = until - kFarewellMax; now < until; now = SteadyClock::now()) {
    std::vector<pollfd> open;
    for (Link& link : links_) {
      for (Stream& stream : link.streams) {
        std::byte unread[4096];
        while (stream.wire && !stream.closed) {
          const ssize_t got = stream.wire.receive(unread);
          if (got < 0 && would_block(errno)) break;
          if (got == 0 || (got < 0 && errno != EINTR)) stream.closed = true;
          if (SteadyClock::now() >= until) return;
        }
        if (stream.wire && !stream.closed) open.push_back({stream.wire.descriptor(), POLLIN, 0});
      }
    }
    if (open.empty()) return;
    (void)::poll(open.data(), open.size(), int(std::chrono::ceil<Duration>(until - now).count()));
  }
}

Result<void> TcpTransport::await_all(Duration at_most) {
  // Each round doubles the distance to the peers, so that after the last round every rank has heard
  // from all ranks.
  timeout_.set_limit(std::max(at_most, Duration(1)));
  progressed();
  std::byte sent{};
  std::byte received[64];
  int round = 0;
  for (int distance = 1; distance < size(); distance *= 2, ++round) {
    const int to = (rank() + distance) % size();
    const int from = (rank() + size() - distance) % size();
    receive_into(from, {kBootstrapOperation, uint64_t(round)}, std::span(&received[round], 1));
    send(std::span(&to, 1), {kBootstrapOperation, uint64_t(round)}, std::span(&sent, 1));
    for (;;) {
      TRY(advance());
      if (all_received() && all_sent()) break;
      TRY(wait());
    }
  }
  timeout_.set_limit(options_->peer_timeout);
  all_have_joined_ = true;
  contacts_->all_have_joined();
  return ok();
}

std::string TcpTransport::name(int rank) const {
  const Endpoint& endpoint = options_->endpoints[size_t(rank)];
  if (endpoint.host.empty()) return "rank " + std::to_string(rank);
  return "rank " + std::to_string(rank) + " (" + text_of(endpoint) + ")";
}

size_t TcpTransport::parts_of(size_t bytes) const {
  return std::clamp<size_t>(bytes / kPartBytesMin, 1, size_t(options_->sockets_per_peer));
}

// Returns part `index` of the `parts` into which a message is split.
template <class Byte>
static std::span<Byte> part_of(std::span<Byte> bytes, size_t index, size_t parts) {
  const auto begin_of = [&](size_t part) {
    return part == parts ? bytes.size() : bytes.size() / parts * part;
  };
  return bytes.subspan(begin_of(index), begin_of(index + 1) - begin_of(index));
}

void TcpTransport::need(int peer, size_t socket) {
  if (links_[size_t(peer)].streams[socket].wire) return;
  contacts_->want(peer, int(socket));
  contacts_due_ = true;
}

void TcpTransport::send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) {
  if (failure_) return;
  const size_t parts = parts_of(bytes.size());
  for (const int peer : peers) {
    CHECK(peer >= 0 && peer < size() && peer != rank(), "messages go to another rank");
    Link& link = links_[size_t(peer)];
    busy_.push_back(peer);
    for (size_t index = 0; index < parts; ++index) {
      const auto part = part_of(bytes, index, parts);
      Stream& stream = link.streams[index];
      stream.outgoing.push_back({encode({FrameKind::data, tag, part.size()}), part});
      ++sends_open_;
      need(peer, index);
      // Small messages are sent at once. advance() sends the rest and reports errors.
      if (stream.outgoing.size() == 1) (void)push(peer, stream);
    }
  }
}

void TcpTransport::receive_into(int peer, Tag tag, std::span<std::byte> into) {
  receives_open_ += expect(peer, {tag, into, false});
}

void TcpTransport::receive(int peer, Tag tag, std::span<std::byte> destination) {
  Link& link = links_[size_t(peer)];
  link.kept = destination.data();
  link.kept_parts = expect(peer, {tag, destination, true});
}

void TcpTransport::release(int peer) { links_[size_t(peer)].arrived = nullptr; }

size_t TcpTransport::expect(int peer, Expected expected) {
  CHECK(peer >= 0 && peer < size() && peer != rank(), "messages come from another rank");
  const size_t parts = parts_of(expected.bytes.size());
  if (failure_) return parts;
  // The timeout begins with a new wait.
  if (busy_.empty()) progressed();
  busy_.push_back(peer);
  for (size_t index = 0; index < parts; ++index) {
    Expected part = expected;
    part.bytes = part_of(expected.bytes, index, parts);
    links_[size_t(peer)].streams[index].expected.push_back(part);
    need(peer, index);
  }
  return parts;
}

Result<void> TcpTransport::advance_contacts() {
  contacts_due_ = false;
  std::vector<Contacts::Proved> proved;
  auto peer_error = contacts_->advance(proved);
  for (auto& each : proved) {
    Stream& stream = links_[size_t(each.peer)].streams[size_t(each.socket)];
    // A rank that connects twice has lost its first connection, unless that one was used.
    if (stream.wire && stream.used) continue;
    stream.wire = std::move(each.wire);
    busy_.push_back(each.peer);
    progressed();
  }
  if (!peer_error) return ok();
  peer_error->error.message =
      "cannot connect to " + name(peer_error->peer) + ": " + peer_error->error.message;
  // Other ranks may know the first cause.
  std::vector<Fault> faults;
  for (int peer = 0; peer < size(); ++peer) {
    for (Stream& stream : links_[size_t(peer)].streams) {
      if (!stream.wire || stream.closed) continue;
      if (auto fault = pull(peer, stream)) faults.push_back(*std::move(fault));
    }
  }
  faults.insert(faults.begin(), Fault{peer_error->peer, std::move(peer_error->error), false});
  return blame(std::move(faults));
}

std::optional<TcpTransport::Fault> TcpTransport::move(int peer) {
  for (Stream& stream : links_[size_t(peer)].streams) {
    if (!stream.wire) continue;
    auto fault = pull(peer, stream);
    if (!fault && (fault = push(peer, stream))) {
      // A peer that closed the connection may have reported the reason just before.
      if (auto failure = pull(peer, stream)) fault = std::move(failure);
    }
    if (fault) return fault;
  }
  return std::nullopt;
}

Result<void> TcpTransport::advance() {
  if (failure_) return *failure_;
  if (contacts_due_ || contacts_->busy()) TRY(advance_contacts());
  // Checks every link before it blames a rank: when several peers are gone, one of them may have
  // reported the first failure.
  std::vector<Fault> faults;
  std::sort(busy_.begin(), busy_.end());
  busy_.erase(std::unique(busy_.begin(), busy_.end()), busy_.end());
  size_t still = 0;
  for (size_t i = 0; i < busy_.size(); ++i) {
    const int peer = busy_[i];
    if (auto fault = move(peer)) faults.push_back(*std::move(fault));
    const auto& streams = links_[size_t(peer)].streams;
    if (!std::all_of(streams.begin(), streams.end(),
                     [](const Stream& each) { return each.idle(); }))
      busy_[still++] = peer;
  }
  busy_.resize(still);
  if (faults.empty()) return ok();
  return blame(std::move(faults));
}

Error TcpTransport::blame(std::vector<Fault> faults) {
  const auto reported =
      std::find_if(faults.begin(), faults.end(), [](const Fault& fault) { return fault.reported; });
  if (reported != faults.end()) return fail(reported->error, reported->rank);
  Error error = faults[0].error;
  for (size_t i = 1; i < faults.size(); ++i) error.message += "; " + faults[i].error.message;
  return fail(std::move(error), faults[0].rank);
}

void TcpTransport::finish_expected(Link& link, Stream& stream) {
  if (!stream.expected.front().kept) {
    --receives_open_;
  } else if (--link.kept_parts == 0) {
    link.arrived = link.kept;
  }
  stream.expected.pop_front();
  stream.frame.reset();
}

std::optional<TcpTransport::Fault> TcpTransport::pull(int peer, Stream& stream) {
  stream.readable = false;
  while (!stream.closed && !stream.holds_unwanted_data()) {
    // The next bytes are part of the header, of the payload of a control frame, or of the caller's
    // buffer.
    char text[kControlPayloadBytesMax];
    std::span<std::byte> into;
    if (!stream.frame) {
      into = std::span(stream.header).subspan(stream.header_received);
    } else if (stream.frame->kind == FrameKind::data) {
      if (auto fault = compare(peer, stream)) return fault;
      into = stream.expected.front().bytes.subspan(stream.expected.front().received);
    } else {
      into = std::as_writable_bytes(std::span(text, stream.frame->length - stream.control.size()));
    }
    const ssize_t got = stream.wire.receive(into);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) break;
    if (got < 0 && !stream.left) return gone(peer, describe(errno));
    if (got <= 0) {
      stream.closed = true;
      if (!stream.left) return gone(peer, "closed by the peer");
      break;
    }
    idle_polls_ = 0;
    stream.used = true;

    if (!stream.frame) {
      stream.header_received += size_t(got);
      if (stream.header_received < kFrameHeaderBytes) continue;
      auto header = decode_header(stream.header);
      if (!header) return Fault{peer, std::move(header).error().in(name(peer)), false};
      stream.header_received = 0;
      stream.frame = *header;
    } else if (stream.frame->kind == FrameKind::data) {
      stream.expected.front().received += size_t(got);
    } else {
      stream.control.append(text, size_t(got));
    }

    // Handles a complete frame. The header alone may complete it, since a goodbye has no payload.
    if (stream.frame->kind == FrameKind::data) {
      progressed();
      if (stream.expected.empty()) break;
      const Expected& expected = stream.expected.front();
      if (expected.received == expected.bytes.size()) {
        finish_expected(links_[size_t(peer)], stream);
        if (stream.expected.empty()) break;  // later frames are read when they are expected
      }
    } else if (stream.control.size() == stream.frame->length) {
      if (auto fault = control_frame(peer, stream)) return fault;
    }
  }
  if (stream.left && !stream.expected.empty() && !stream.frame) return exited(peer);
  return std::nullopt;
}

std::optional<TcpTransport::Fault> TcpTransport::compare(int peer, const Stream& stream) const {
  const Expected& expected = stream.expected.front();
  if (stream.frame->tag == expected.tag && stream.frame->length == expected.bytes.size())
    return std::nullopt;
  return Fault{peer,
               other_operation(peer, stream.frame->tag.operation, stream.frame->length,
                               expected.tag.operation, expected.bytes.size()),
               false};
}

Error TcpTransport::other_operation(int peer, uint64_t theirs, uint64_t their_bytes, uint64_t ours,
                                    uint64_t our_bytes) const {
  return conflict(name(peer) + " is in its operation " + std::to_string(theirs) + " with " +
                  std::to_string(their_bytes) + " bytes, while " + name(rank()) +
                  " is in operation " + std::to_string(ours) + " and waits for " +
                  std::to_string(our_bytes) +
                  (theirs == ours && their_bytes == our_bytes ? " of another kind or root" : "") +
                  ": all ranks must call the same operations in the same order");
}

std::optional<TcpTransport::Fault> TcpTransport::control_frame(int peer, Stream& stream) {
  const FrameKind kind = stream.frame->kind;
  const Tag tag = stream.frame->tag;
  const std::string payload = std::exchange(stream.control, {});
  stream.frame.reset();
  if (kind == FrameKind::goodbye) {
    stream.left = true;
    return std::nullopt;
  }
  if (kind == FrameKind::waiting) {
    if (tag.operation >= uint64_t(size()))
      return Fault{peer, corrupt(name(peer) + " reports an invalid rank"), false};
    add_report(peer, int(tag.operation));
    return std::nullopt;
  }
  if (kind == FrameKind::hello)
    return Fault{peer, corrupt(name(peer) + ": a second hello frame"), false};
  auto failed = decode_failed(payload);
  if (!failed) return Fault{peer, std::move(failed).error().in(name(peer)), false};
  if (failed->rank >= uint32_t(size()))
    return Fault{peer, corrupt(name(peer) + " reports an invalid rank"), false};
  return Fault{int(failed->rank), unavailable(failed->why + " (reported by " + name(peer) + ")"),
               true};
}

std::optional<TcpTransport::Fault> TcpTransport::push(int peer, Stream& stream) {
  while (stream.wire && !stream.outgoing.empty()) {
    Outgoing& frame = stream.outgoing.front();
    if (stream.left || stream.closed) {
      if (stream.has_unsent()) return exited(peer);
      stream.outgoing.clear();
      break;
    }
    iovec parts[2];
    int count = 0;
    if (frame.sent < kFrameHeaderBytes) {
      parts[count++] = {frame.header.data() + frame.sent, kFrameHeaderBytes - frame.sent};
    }
    const size_t payload_sent = frame.sent > kFrameHeaderBytes ? frame.sent - kFrameHeaderBytes : 0;
    parts[count++] = {const_cast<std::byte*>(frame.payload.data()) + payload_sent,
                      frame.payload.size() - payload_sent};
    const ssize_t sent = stream.wire.send(std::span(parts, size_t(count)));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && would_block(errno)) break;
    if (sent < 0 && !stream.has_unsent()) {
      stream.outgoing.clear();  // pull() reports the error, or finds a goodbye
      break;
    }
    if (sent < 0) return gone(peer, describe(errno));
    const bool is_report = frame.is_report;
    if (!is_report) progressed();
    idle_polls_ = 0;
    stream.used = true;
    frame.sent += size_t(sent);
    if (frame.sent == kFrameHeaderBytes + frame.payload.size()) {
      stream.outgoing.pop_front();
      if (!is_report) --sends_open_;
    }
  }
  return std::nullopt;
}

TcpTransport::Fault TcpTransport::gone(int peer, std::string why) const {
  return {peer, unavailable("lost connection to " + name(peer) + ": " + std::move(why)), false};
}

TcpTransport::Fault TcpTransport::exited(int peer) const {
  return {peer, unavailable(name(peer) + " exited"), false};
}

Result<void> TcpTransport::wait() {
  // A message between two cores needs a few microseconds, and waking a process many more. So this
  // polls for a while before it sleeps, but yields the core to the rank that it may be waiting for.
  if (idle_polls_ < kIdlePollsMax) {
    if (++idle_polls_ == kIdlePollsWithoutYielding) yields_since_ = SteadyClock::now();
    if (idle_polls_ > kIdlePollsWithoutYielding) {
      ::sched_yield();
      if (SteadyClock::now() - yields_since_ > kSocketYieldingMax) idle_polls_ = kIdlePollsMax;
    }
    return poll_sockets(0ms);
  }
  const Duration at_most =
      contacts_->busy() ? contacts_->sleep_max() : TcpOptions::kCancelCheckInterval;
  TRY(poll_sockets(std::min(at_most, timeout_.step())));
  TRY(check_cancelled());
  const std::vector<int> peers = waited_for();
  probe(peers);
  return check_timeout(peers);
}

std::vector<int> TcpTransport::waited_for() const {
  std::vector<int> peers;
  for (int peer = 0; peer < size(); ++peer) {
    const auto& streams = links_[size_t(peer)].streams;
    if (std::any_of(streams.begin(), streams.end(),
                    [](const Stream& each) { return !each.expected.empty() || each.has_unsent(); }))
      peers.push_back(peer);
  }
  return peers;
}

void TcpTransport::probe(std::span<const int> waited_for) {
  if (!all_have_joined_ || SteadyClock::now() - timeout_.moved_at() < kProbeInterval) return;
  for (const int peer : waited_for) {
    // Attempts to connect to lower ranks are already in progress.
    if (!is_linked(peer) && peer > rank()) contacts_->probe(peer);
  }
}

Result<void> TcpTransport::check_cancelled() {
  if (!options_->cancelled || !options_->cancelled()) return ok();
  return fail(cancelled(name(rank()) + " was cancelled"), rank());
}

bool TcpTransport::has_readable() const {
  const auto readable = [](const Stream& stream) { return stream.readable; };
  return contacts_due_ || std::any_of(links_.begin(), links_.end(), [&](const Link& link) {
           return std::any_of(link.streams.begin(), link.streams.end(), readable);
         });
}

std::vector<int> TcpTransport::hosts() const {
  std::vector<int> hosts;
  for (int rank = 0; rank < size(); ++rank) hosts.push_back(rank);
  return hosts;
}

Result<std::string> TcpTransport::offer() {
  const Endpoint own{options_->endpoints[size_t(rank())].host, 0};
  offered_ = TRY(listen_at(own, size()).in("listening for a subgroup"));
  const uint16_t port = TRY(port_of(offered_));
  return encode_endpoint({own.host, port});
}

Result<std::unique_ptr<Transport>> TcpTransport::connect_members(
    const std::vector<int>& members, const std::vector<std::string>& offers, uint64_t key) {
  return std::unique_ptr<Transport>(TRY(connect_over_tcp(members, offers, key)));
}

Result<std::unique_ptr<TcpTransport>> TcpTransport::connect_over_tcp(
    const std::vector<int>& members, const std::vector<std::string>& offers, uint64_t key) {
  TcpOptions options = *options_;
  options.endpoints.clear();
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i] == rank()) options.rank = int(i);
    options.endpoints.push_back(
        TRY(decode_endpoint(offers[size_t(members[i])]).in("offer of " + name(members[i]))));
  }
  // Keeps out other groups of the same job.
  const Digest secret = hmac_sha256(options_->shared_value, "part " + std::to_string(key));
  options.shared_value.assign(secret.begin(), secret.end());
  return connect_tcp(std::move(options), std::exchange(offered_, {}));
}

Result<bool> TcpTransport::has_message(int peer) {
  TRY(poll_sockets(0ms));
  TRY(advance());
  return links_[size_t(peer)].streams[0].holds_unwanted_data();
}

Result<void> TcpTransport::check_timeout(std::span<const int> waited_for) {
  if (failure_) return *failure_;
  const auto now = SteadyClock::now();
  if (const auto named = timeout_.report(waited_for, now)) report_waiting(*named);
  if (!timeout_.is_over(now)) return ok();
  const int guilty = timeout_.guilty(waited_for, now);
  return fail(unavailable("timed out: nothing from " + name(guilty) + " for " +
                          std::to_string(timeout_.limit().count()) + " ms"),
              guilty);
}

void TcpTransport::report_waiting(int guilty) {
  ++reports_sent_;
  named_ = guilty;
  const HeaderBytes report = encode(FrameHeader{FrameKind::waiting, {uint64_t(guilty), 0}, 0});
  for (int peer = 0; peer < size(); ++peer) {
    Stream& stream = links_[size_t(peer)].streams[0];
    // A peer that does not read what it was sent does not need a report.
    if (!stream.wire || stream.left || stream.closed || !stream.outgoing.empty()) continue;
    stream.outgoing.push_back({report, {}, 0, true});
    (void)push(peer, stream);
  }
}

Result<void> TcpTransport::poll_sockets(Duration at_most) {
  if (failure_) return *failure_;
  std::vector<pollfd> waited;
  std::vector<std::pair<int, Stream*>> streams;
  for (int peer = 0; peer < size(); ++peer) {
    for (Stream& stream : links_[size_t(peer)].streams) {
      if (!stream.wire || stream.closed) continue;
      const int events =
          (stream.holds_unwanted_data() ? 0 : POLLIN) | (stream.outgoing.empty() ? 0 : POLLOUT);
      if (events == 0) continue;
      waited.push_back({stream.wire.descriptor(), short(events), 0});
      streams.emplace_back(peer, &stream);
    }
  }
  contacts_->add_events(waited);
  const int ready = ::poll(waited.data(), waited.size(), int(at_most.count()));
  if (ready < 0 && errno != EINTR) return fail(from_errno("waiting for the links"), rank());
  for (size_t i = 0; i < waited.size() && ready > 0; ++i) {
    if (waited[i].revents == 0) continue;
    idle_polls_ = 0;
    if (i >= streams.size()) {
      contacts_due_ = true;
      continue;
    }
    streams[i].second->readable = true;
    busy_.push_back(streams[i].first);
  }
  return ok();
}

void TcpTransport::abandon(std::string_view why) {
  if (!failure_) fail(unavailable(name(rank()) + ": " + std::string(why)), rank());
}

Error TcpTransport::fail(Error error, int guilty) {
  if (failure_) return *failure_;
  failure_ = error;
  const std::string failure = encode(Failed{uint32_t(guilty), error.message});
  for (Link& link : links_) {
    link.arrived = nullptr;
    for (Stream& stream : link.streams) {
      // No frame can be sent in the middle of a data frame; then closing the connection must
      // suffice.
      if (stream.wire && (stream.outgoing.empty() || stream.outgoing.front().sent == 0))
        (void)stream.wire.send(failure.data(), failure.size());
      if (stream.wire) stream.wire.end();
      stream.outgoing.clear();
      stream.expected.clear();
    }
  }
  return error;
}

}  // namespace trainyard::collectives
