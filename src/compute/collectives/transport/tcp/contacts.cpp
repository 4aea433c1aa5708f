#include "collectives/transport/tcp/contacts.hpp"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "collectives/transport/tcp/addresses.hpp"
#include "collectives/transport/tcp/sockets.hpp"

namespace trainyard::collectives {
namespace {

constexpr Duration kConnectRetryFirst = 2ms;  // enough for ranks that start together
constexpr Duration kConnectRetryMax = 50ms;   // the longest delay after a host comes up late
// After this time, the name is resolved again, since the address may have changed.
constexpr Duration kConnectAttemptMax = 3s;
// The limit if a rank has several addresses; longer than any round trip on earth.
constexpr Duration kAddressAttemptMax = 1s;
constexpr Duration kUnauthenticatedHelloMax = 10s;  // then an unauthenticated peer is disconnected
// Connections without a proof yet; further connections wait.
constexpr size_t kUnauthenticatedMax = 256;

bool send_whole(Wire& wire, std::string_view bytes) {
  // A hello is far smaller than the buffer of an empty socket: it is sent at once, or the
  // connection is broken.
  return wire.send(bytes.data(), bytes.size()) == ssize_t(bytes.size());
}

Nonce fresh_nonce() {
  Nonce nonce;
  CHECK(::getrandom(nonce.data(), nonce.size(), 0) == ssize_t(nonce.size()),
        "the kernel returns 16 random bytes");
  return nonce;
}

}  // namespace

Result<std::optional<std::string>> Contacts::FrameReader::read(Wire& wire, FrameKind kind) {
  for (;;) {
    size_t wanted = kFrameHeaderBytes - std::min(bytes_.size(), kFrameHeaderBytes);
    if (wanted == 0) wanted = kFrameHeaderBytes + length_ - bytes_.size();
    char buffer[kFrameHeaderBytes + kControlPayloadBytesMax];
    const ssize_t got = wire.receive(std::as_writable_bytes(std::span(buffer, wanted)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) return std::optional<std::string>{};
    if (got < 0) return from_errno("waiting for a hello");
    if (got == 0) return unavailable("it closed the connection");
    bytes_.append(buffer, size_t(got));
    if (bytes_.size() == kFrameHeaderBytes) {
      HeaderBytes header_bytes;
      std::memcpy(header_bytes.data(), bytes_.data(), header_bytes.size());
      const FrameHeader header = TRY(decode_header(header_bytes));
      if (header.kind != kind || header.length == 0)
        return corrupt("a frame of kind " + std::to_string(int(header.kind)) + " and " +
                       std::to_string(header.length) + " bytes is out of order: expected kind " +
                       std::to_string(int(kind)));
      length_ = size_t(header.length);
    } else if (bytes_.size() == kFrameHeaderBytes + length_) {
      std::string payload = bytes_.substr(kFrameHeaderBytes);
      bytes_.clear();
      return std::optional(std::move(payload));
    }
  }
}

Contacts::Contacts(const TcpOptions& options, std::shared_ptr<const TlsKey> key, Socket listener)
    : options_(options), key_(std::move(key)), listener_(std::move(listener)) {}

void Contacts::want(int peer, int socket) {
  if (peer > options_.rank) return;  // that rank connects
  const auto same = [&](const Attempt& each) { return each.peer == peer && each.socket == socket; };
  if (std::any_of(attempts_.begin(), attempts_.end(), same)) return;
  attempts_.push_back({peer, socket, false, false, {}, kConnectRetryFirst, 0, {}});
}

void Contacts::probe(int peer) {
  const auto same = [&](const Attempt& each) { return each.peer == peer && each.probe; };
  if (std::any_of(attempts_.begin(), attempts_.end(), same)) return;
  attempts_.push_back({peer, 0, true, false, {}, kConnectRetryMax, 0, {}});
}

std::string Contacts::last_failure(int peer) const {
  for (const Attempt& attempt : attempts_) {
    if (attempt.peer != peer || attempt.last_failures.empty()) continue;
    std::string all;
    for (const std::string& each : attempt.last_failures) all += (all.empty() ? "" : ", ") + each;
    return all;
  }
  return peer < options_.rank ? "it was not tried" : "it did not connect";
}

void Contacts::add_events(std::vector<pollfd>& events) const {
  for (const Contact& contact : contacts_) {
    const bool writes =
        (contact.ours && !contact.connected) || contact.wire.handshake_wants_write();
    events.push_back({contact.wire.descriptor(), short(writes ? POLLOUT : POLLIN), 0});
  }
  if (listener_ && unauthenticated() < kUnauthenticatedMax)
    events.push_back({listener_.descriptor(), POLLIN, 0});
}

Duration Contacts::sleep_max() const {
  Duration at_most = TcpOptions::kCancelCheckInterval;
  for (const Attempt& attempt : attempts_) {
    if (attempt.under_way) continue;
    at_most = std::min(
        at_most,
        std::max(Duration(1), std::chrono::ceil<Duration>(attempt.next - SteadyClock::now())));
  }
  return at_most;
}

size_t Contacts::unauthenticated() const {
  return size_t(
      std::count_if(contacts_.begin(), contacts_.end(), [](const Contact& c) { return !c.ours; }));
}

std::optional<Contacts::PeerError> Contacts::begin_attempts() {
  std::optional<PeerError> peer_error;
  for (Attempt& attempt : attempts_) {
    if (attempt.under_way || SteadyClock::now() < attempt.next) continue;
    const size_t addresses = hosts_of(options_.endpoints[size_t(attempt.peer)]).size();
    attempt.next = SteadyClock::now() + attempt.pause;
    // Tries every address before the pause grows.
    if (attempt.tries++ % addresses + 1 == addresses)
      attempt.pause = std::min(attempt.pause * 2, kConnectRetryMax);
    Socket socket = begin_connecting(attempt);
    if (!socket) {
      if (!peer_error) peer_error = peer_error_of(attempt);
      continue;
    }
    attempt.under_way = true;
    Contact contact;
    contact.wire = Wire(std::move(socket));
    contact.peer = attempt.peer;
    contact.socket = attempt.socket;
    contact.ours = true;
    contact.probe = attempt.probe;
    contact.until = SteadyClock::now() +
                    (attempt.last_failures.size() > 1 ? kAddressAttemptMax : kConnectAttemptMax);
    contacts_.push_back(std::move(contact));
  }
  return peer_error;
}

Socket Contacts::begin_connecting(Attempt& attempt) {
  const auto addresses = resolve(options_.endpoints[size_t(attempt.peer)]);
  if (!addresses) {
    attempt.last_failures = {addresses.error().message};
    return Socket();
  }
  attempt.last_failures.resize(addresses->size(), "not tried");
  const size_t index = (attempt.tries - 1) % addresses->size();
  const Address& address = (*addresses)[index];
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket) set_link_options(socket.descriptor());
  if (socket &&
      (::connect(socket.descriptor(), address.get(), address.length) == 0 || errno == EINPROGRESS))
    return socket;
  attempt.last_failures[index] = std::strerror(errno);
  return Socket();
}

void Contacts::accept_all() {
  // Accepts all pending connections: 64 ranks may connect at the same time.
  while (listener_ && unauthenticated() < kUnauthenticatedMax) {
    Socket socket(
        ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    set_link_options(socket.descriptor());
    Contact contact;
    contact.wire = Wire(std::move(socket));
    contact.connected = true;
    contact.until = SteadyClock::now() + kUnauthenticatedHelloMax;
    if (key_) contact.wire.encrypt(*key_, TlsSide::accepts);
    contacts_.push_back(std::move(contact));
  }
}

// A contact that has proved its membership becomes a link. A failed contact is closed. Other
// contacts stay.
std::optional<Contacts::PeerError> Contacts::advance(std::vector<Proved>& proved) {
  std::optional<PeerError> peer_error = begin_attempts();
  accept_all();
  std::vector<Contact> still;
  for (Contact& contact : std::exchange(contacts_, {})) {
    auto answered = read_frame(contact);
    if (answered && *answered) {
      if (contact.ours) {
        std::erase_if(attempts_, [&](const Attempt& each) {
          return each.peer == contact.peer && each.socket == contact.socket &&
                 each.probe == contact.probe;
        });
      }
      if (!contact.probe) proved.push_back({contact.peer, contact.socket, std::move(contact.wire)});
      continue;
    }
    // A rank that computes may answer late. Before all ranks have joined, the address may have
    // moved to another host.
    const bool may_be_slow = contact.ours && contact.connected && all_have_joined_;
    if (answered && (may_be_slow || SteadyClock::now() < contact.until)) {
      still.push_back(std::move(contact));
      continue;
    }
    if (!contact.ours) continue;  // an unauthenticated peer, or a rank that will connect again
    auto found = failed(contact, answered ? unavailable("it is reachable, but does not answer")
                                          : std::move(answered).error());
    if (found && !peer_error) peer_error = std::move(found);
  }
  contacts_.insert(contacts_.end(), std::make_move_iterator(still.begin()),
                   std::make_move_iterator(still.end()));
  return peer_error;
}

std::optional<Contacts::PeerError> Contacts::failed(const Contact& contact, Error error) {
  const auto attempt = std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& each) {
    return each.peer == contact.peer && each.socket == contact.socket &&
           each.probe == contact.probe;
  });
  CHECK(attempt != attempts_.end(), "an attempt exists until its connection is established");
  attempt->under_way = false;
  auto& failures = attempt->last_failures;
  failures[(attempt->tries - 1) % failures.size()] = error.message;
  // One of several addresses may belong to another host in this network. With a single address, the
  // peer itself is another program.
  if (error.kind != Kind::unavailable && failures.size() == 1)
    return PeerError{contact.peer, std::move(error)};
  return peer_error_of(*attempt);
}

std::optional<Contacts::PeerError> Contacts::peer_error_of(const Attempt& attempt) const {
  const auto& failures = attempt.last_failures;
  const bool all_refused =
      std::all_of(failures.begin(), failures.end(),
                  [](const std::string& each) { return each == std::strerror(ECONNREFUSED); });
  if (!all_refused || !all_have_joined_) return std::nullopt;
  return PeerError{attempt.peer, unavailable("its address no longer accepts connections")};
}

// Returns true when the peer has proved its membership. Errors: unavailable, when another attempt
// may help.
Result<bool> Contacts::read_frame(Contact& contact) {
  if (!contact.connected && !TRY(finish_connecting(contact))) return false;
  if (contact.probe) return true;
  if (!contact.secured) {
    if (!TRY(contact.wire.handshake())) return false;
    contact.secured = true;
    if (contact.ours) {
      contact.our_hello = fresh_hello(contact);
      if (!send_whole(contact.wire, encode(contact.our_hello)))
        return unavailable("it closed the connection before the hello");
    }
  }
  if (!contact.hello) {
    const auto payload = TRY(contact.reader.read(contact.wire, FrameKind::hello));
    if (!payload) return false;
    contact.hello = TRY(decode_hello(*payload));
    TRY(answer_hello(contact));
  }
  const auto payload = TRY(contact.reader.read(contact.wire, FrameKind::proof));
  if (!payload) return false;
  const Digest proof = TRY(decode_proof(*payload));
  if (equal_in_constant_time(proof,
                             prove(options_.shared_value, *contact.hello, contact.our_hello)))
    return true;
  return conflict("it belongs to another job: it does not know this group's secret");
}

Result<bool> Contacts::finish_connecting(Contact& contact) {
  pollfd writable{contact.wire.descriptor(), POLLOUT, 0};
  if (::poll(&writable, 1, 0) <= 0) return false;
  int error_number = 0;
  socklen_t length = sizeof error_number;
  ::getsockopt(contact.wire.descriptor(), SOL_SOCKET, SO_ERROR, &error_number, &length);
  if (error_number != 0) return unavailable(std::strerror(error_number));
  contact.connected = true;
  contact.until = SteadyClock::now() + kConnectAttemptMax;
  if (key_ && !contact.probe) contact.wire.encrypt(*key_, TlsSide::connects);
  return true;
}

Hello Contacts::fresh_hello(const Contact& contact) const {
  return {uint32_t(options_.rank), uint32_t(options_.endpoints.size()), fresh_nonce(),
          uint32_t(contact.socket), uint32_t(options_.sockets_per_peer)};
}

Result<void> Contacts::answer_hello(Contact& contact) {
  const Hello& hello = *contact.hello;
  const int ranks = int(options_.endpoints.size());
  if (!contact.ours) {
    // Answers rejected peers too, so that they can report the reason.
    contact.socket = int(std::min<uint32_t>(hello.socket, TcpOptions::kSocketsPerPeerMax));
    contact.our_hello = fresh_hello(contact);
    contact.our_hello.socket = std::min(contact.our_hello.socket, contact.our_hello.sockets - 1);
    if (!send_whole(contact.wire, encode(contact.our_hello)))
      return unavailable("it closed the connection during the hello");
    if (int(hello.ranks) != ranks || int(hello.rank) <= options_.rank)
      return conflict("it is not a rank of this group");
    contact.peer = int(hello.rank);
  } else if (int(hello.ranks) != ranks || int(hello.rank) != contact.peer) {
    return conflict("it is rank " + std::to_string(hello.rank) + " of " +
                    std::to_string(hello.ranks) + ", but rank " + std::to_string(contact.peer) +
                    " of " + std::to_string(ranks) +
                    " was expected: start all ranks with the same addresses");
  }
  if (int(hello.sockets) != options_.sockets_per_peer)
    return conflict("it has " + std::to_string(hello.sockets) + " sockets for each peer, where " +
                    std::to_string(options_.sockets_per_peer) + " are configured here");
  const Digest proof = prove(options_.shared_value, contact.our_hello, hello);
  if (!send_whole(contact.wire, encode_proof(proof)))
    return unavailable("it closed the connection during the hello");
  return ok();
}

}  // namespace trainyard::collectives
