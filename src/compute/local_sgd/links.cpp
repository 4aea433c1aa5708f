#include "local_sgd/links.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "collectives/transport/tcp/addresses.hpp"
#include "collectives/transport/tcp/sockets.hpp"

namespace trainyard::local_sgd {
namespace {

using SteadyClock = std::chrono::steady_clock;

// About the time by which regions that start together miss each other.
constexpr Duration kConnectRetryFirst = 20ms;
// The longest additional wait for a region that comes back.
constexpr Duration kConnectRetryMax = 1s;
// Allows for two lost packets on a long link; the next attempt resolves the name again.
constexpr Duration kConnectAttemptMax = 10s;
constexpr Duration kHandshakeMax = 30s;  // several round trips on the slowest link
// Unauthenticated connections; further connections wait in the kernel.
constexpr size_t kUnauthenticatedMax = 64;
constexpr size_t kReadBytes = 256 * 1024;  // per read: the bytes in flight on a long link

// The ranks of a job and the leaders of its regions may share a secret; the prefix keeps them from
// connecting to each other.
std::string secret_of(const LinkOptions& options) { return "regions " + options.shared_value; }

Result<collectives::Socket> begin_connecting(const collectives::Endpoint& endpoint) {
  const auto addresses = TRY(collectives::resolve(endpoint));
  const collectives::Address& first = addresses.front();
  collectives::Socket socket(
      ::socket(first.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return from_errno("opening a socket");
  collectives::set_link_options(socket.descriptor());
  if (::connect(socket.descriptor(), first.get(), first.length) != 0 && errno != EINPROGRESS)
    return unavailable(std::strerror(errno));
  return socket;
}

collectives::Nonce fresh_nonce() {
  collectives::Nonce nonce;
  CHECK(::getrandom(nonce.data(), nonce.size(), 0) == ssize_t(nonce.size()),
        "getrandom returns 16 bytes at once");
  return nonce;
}

std::string text_of(const collectives::HeaderBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::unique_ptr<Links>> Links::open(LinkOptions options) {
  CHECK(options.region < options.leaders.size() && options.leaders.size() <= 64,
        "region must be an index of leaders, which are at most 64");
  const collectives::Endpoint& own = options.leaders[options.region];
  collectives::Socket listener;
  if (options.leaders.size() > 1) {
    listener = TRY(collectives::listen_at(own, int(options.leaders.size()))
                       .in("listening at " + own.host + ":" + std::to_string(own.port)));
  }
  std::shared_ptr<const collectives::TlsKey> key;
  if (options.encrypt)
    key = TRY(
        collectives::TlsKey::make(secret_of(options)).in("encrypting the links between regions"));
  return std::unique_ptr<Links>(new Links(std::move(options), std::move(listener), std::move(key)));
}

Links::Links(LinkOptions options, collectives::Socket listener,
             std::shared_ptr<const collectives::TlsKey> key)
    : options_(std::move(options)),
      secret_(secret_of(options_)),
      key_(std::move(key)),
      listener_(std::move(listener)),
      attempts_(options_.region) {
  for (Attempt& attempt : attempts_) attempt.pause = kConnectRetryFirst;
}

Links::~Links() {
  const std::string goodbye = text_of(encode(collectives::FrameHeader{}));
  for (const auto& each : connections_) {
    // Best effort: a peer that does not receive it sees the connection close.
    if (each->proved && !each->broken && each->out.empty())
      (void)each->wire.send(goodbye.data(), goodbye.size());
  }
}

std::string Links::name_of(uint32_t region) const {
  const collectives::Endpoint& endpoint = options_.leaders[region];
  return "region " + std::to_string(region) + " (" + endpoint.host + ":" +
         std::to_string(endpoint.port) + ")";
}

Links::Connection* Links::link_to(uint32_t region) {
  for (const auto& each : connections_) {
    if (each->proved && !each->broken && each->region == region) return each.get();
  }
  return nullptr;
}

void Links::send(uint32_t region, std::string_view message) {
  Connection* link = link_to(region);
  if (!link) return;
  std::string frame =
      text_of(encode(collectives::FrameHeader{collectives::FrameKind::data, {}, message.size()}));
  frame += message;
  queue(*link, std::move(frame));
}

void Links::close(uint32_t region, std::string why) {
  if (Connection* link = link_to(region)) break_off(*link, std::move(why));
}

bool Links::all_sent() const {
  return std::all_of(connections_.begin(), connections_.end(), [](const auto& each) {
    return !each->proved || each->broken || each->out.empty();
  });
}

bool Links::is_handshaking() const {
  return std::any_of(connections_.begin(), connections_.end(), [](const auto& each) {
    return !each->broken && !each->proved && each->connected && (each->outgoing || each->hello);
  });
}

Result<std::vector<LinkEvent>> Links::wait(Duration at_most) {
  const auto until = SteadyClock::now() + at_most;
  for (;;) {
    begin_attempts();
    accept_connections();
    for (size_t i = 0; i < connections_.size(); ++i) advance(*connections_[i]);
    remove_broken();
    const auto left = std::chrono::ceil<Duration>(until - SteadyClock::now());
    if (!events_.empty() || left <= 0ms) return std::exchange(events_, {});
    TRY(sleep(std::min(left, LinkOptions::kCancelCheckInterval)));
  }
}

Result<void> Links::sleep(Duration at_most) {
  if (options_.cancelled && options_.cancelled())
    return cancelled("cancelled while waiting for other regions");
  std::vector<pollfd> waited;
  if (listener_) waited.push_back({listener_.descriptor(), POLLIN, 0});
  for (const auto& each : connections_) {
    const bool writes = !each->connected ||
                        (each->secured ? !each->out.empty() : each->wire.handshake_wants_write());
    waited.push_back({each->wire.descriptor(), short(POLLIN | (writes ? POLLOUT : 0)), 0});
  }
  if (::poll(waited.data(), waited.size(), int(at_most.count())) < 0 && errno != EINTR)
    return from_errno("waiting for the regions");
  return ok();
}

void Links::begin_attempts() {
  const auto now = SteadyClock::now();
  for (uint32_t region = 0; region < options_.region; ++region) {
    Attempt& attempt = attempts_[region];
    if (attempt.under_way || link_to(region) || now < attempt.next) continue;
    attempt.next = now + attempt.pause;
    attempt.pause = std::min(attempt.pause * 2, kConnectRetryMax);
    auto socket = begin_connecting(options_.leaders[region]);
    if (!socket) {
      attempt.last_failure = socket.error().message;
      continue;
    }
    attempt.under_way = true;
    auto connection = std::make_unique<Connection>();
    connection->wire = collectives::Wire(*std::move(socket));
    connection->region = region;
    connection->outgoing = true;
    connection->until = now + kConnectAttemptMax;
    connections_.push_back(std::move(connection));
  }
}

void Links::accept_connections() {
  const auto unauthenticated = [&] {
    return size_t(std::count_if(connections_.begin(), connections_.end(),
                                [](const auto& each) { return !each->outgoing && !each->proved; }));
  };
  while (listener_ && unauthenticated() < kUnauthenticatedMax) {
    collectives::Socket socket(
        ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    collectives::set_link_options(socket.descriptor());
    auto connection = std::make_unique<Connection>();
    connection->wire = collectives::Wire(std::move(socket));
    if (key_) connection->wire.encrypt(*key_, collectives::TlsSide::accepts);
    connection->connected = true;
    connection->until = SteadyClock::now() + kHandshakeMax;
    connections_.push_back(std::move(connection));
  }
}

void Links::advance(Connection& connection) {
  if (connection.broken) return;
  if (!connection.connected && !finish_connecting(connection)) return;
  if (connection.secured || finish_handshake(connection)) {
    push(connection);
    pull(connection);
    push(connection);
  }
  // A region that this one connected to may compute for long before it answers. Only incoming
  // connections have a deadline.
  if (!connection.proved && !connection.outgoing && SteadyClock::now() >= connection.until)
    break_off(connection, "timed out waiting for its proof of the secret");
}

bool Links::finish_connecting(Connection& connection) {
  pollfd writable{connection.wire.descriptor(), POLLOUT, 0};
  if (::poll(&writable, 1, 0) <= 0) {
    if (SteadyClock::now() >= connection.until) break_off(connection, "timed out connecting");
    return false;
  }
  int error_number = 0;
  socklen_t length = sizeof error_number;
  ::getsockopt(connection.wire.descriptor(), SOL_SOCKET, SO_ERROR, &error_number, &length);
  if (error_number != 0) {
    break_off(connection, std::strerror(error_number));
    return false;
  }
  connection.connected = true;
  if (key_) connection.wire.encrypt(*key_, collectives::TlsSide::connects);
  return true;
}

bool Links::finish_handshake(Connection& connection) {
  const auto secured = connection.wire.handshake();
  if (!secured) {
    break_off(connection, secured.error().message);
    return false;
  }
  connection.secured = *secured;
  if (connection.secured && connection.outgoing) send_hello(connection);
  return connection.secured;
}

void Links::send_hello(Connection& connection) {
  connection.our_hello = {options_.region, regions(), fresh_nonce()};
  queue(connection, encode(connection.our_hello));
}

void Links::queue(Connection& connection, std::string bytes) {
  connection.out.push_back(std::move(bytes));
}

void Links::push(Connection& connection) {
  while (!connection.broken && !connection.out.empty()) {
    const std::string& front = connection.out.front();
    const ssize_t sent = connection.wire.send(front.data() + connection.out_sent,
                                              front.size() - connection.out_sent);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && collectives::would_block(errno)) return;
    if (sent < 0) {
      pull(connection);  // a message of the peer may have arrived before
      return break_off(connection, std::strerror(errno));
    }
    traffic_.sent += uint64_t(sent);
    connection.out_sent += size_t(sent);
    if (connection.out_sent < front.size()) continue;
    connection.out.pop_front();
    connection.out_sent = 0;
  }
}

void Links::pull(Connection& connection) {
  while (!connection.broken) {
    char buffer[kReadBytes];
    const ssize_t got = connection.wire.receive(std::as_writable_bytes(std::span(buffer)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && collectives::would_block(errno)) return;
    if (got <= 0)
      return break_off(connection, got == 0 ? "connection closed by peer" : std::strerror(errno));
    traffic_.received += uint64_t(got);
    connection.in.append(buffer, size_t(got));
    collectives::FrameKind kind;
    std::string payload;
    while (next_frame(connection, kind, payload)) handle(connection, kind, std::move(payload));
  }
}

bool Links::next_frame(Connection& connection, collectives::FrameKind& kind, std::string& payload) {
  if (connection.broken || connection.in.size() < collectives::kFrameHeaderBytes) return false;
  collectives::HeaderBytes bytes;
  std::memcpy(bytes.data(), connection.in.data(), bytes.size());
  const auto header = collectives::decode_header(bytes);
  if (!header) {
    break_off(connection, header.error().message);
    return false;
  }
  if (header->length > options_.message_bytes_max ||
      (header->kind == collectives::FrameKind::data) != connection.proved) {
    if (header->kind != collectives::FrameKind::goodbye || !connection.proved) {
      break_off(connection, "a frame of kind " + std::to_string(int(header->kind)) + " and " +
                                std::to_string(header->length) +
                                " bytes is too long or out of order");
      return false;
    }
  }
  if (connection.in.size() - collectives::kFrameHeaderBytes < header->length) return false;
  kind = header->kind;
  payload = connection.in.substr(collectives::kFrameHeaderBytes, size_t(header->length));
  connection.in.erase(0, collectives::kFrameHeaderBytes + size_t(header->length));
  return true;
}

void Links::handle(Connection& connection, collectives::FrameKind kind, std::string payload) {
  if (kind == collectives::FrameKind::data) {
    events_.push_back({LinkEvent::Kind::message, *connection.region, std::move(payload)});
  } else if (kind == collectives::FrameKind::goodbye) {
    break_off(connection, "the region has left");
  } else if (kind == collectives::FrameKind::hello && !connection.hello) {
    handle_hello(connection, payload);
  } else if (kind == collectives::FrameKind::proof && connection.hello) {
    handle_proof(connection, payload);
  } else {
    break_off(connection, "a frame of kind " + std::to_string(int(kind)) + " is out of order");
  }
}

void Links::handle_hello(Connection& connection, std::string_view payload) {
  const auto hello = collectives::decode_hello(payload);
  if (!hello) return break_off(connection, hello.error().message);
  if (!connection.outgoing)
    send_hello(connection);  // also before a refusal, so that the peer can report the mismatch
  const bool fits =
      hello->ranks == regions() &&
      (connection.outgoing ? hello->rank == *connection.region : hello->rank > options_.region);
  if (!fits) {
    return break_off(connection, "unexpected peer: region " + std::to_string(hello->rank) + " of " +
                                     std::to_string(hello->ranks));
  }
  connection.region = hello->rank;
  connection.hello = *hello;
  queue(connection,
        collectives::encode_proof(collectives::prove(secret_, connection.our_hello, *hello)));
}

void Links::handle_proof(Connection& connection, std::string_view payload) {
  const auto proof = collectives::decode_proof(payload);
  if (!proof) return break_off(connection, proof.error().message);
  if (!equal_in_constant_time(*proof,
                              collectives::prove(secret_, *connection.hello, connection.our_hello)))
    return break_off(connection, "wrong secret: it must be equal in all regions");
  // A region that connects again has lost its first connection.
  if (Connection* before = link_to(*connection.region))
    break_off(*before, "replaced by a new connection of the region");
  connection.proved = true;
  if (connection.outgoing) attempts_[*connection.region].pause = kConnectRetryFirst;
  events_.push_back({LinkEvent::Kind::linked, *connection.region, {}});
}

void Links::break_off(Connection& connection, std::string why) {
  if (connection.broken) return;
  connection.broken = true;
  connection.why = std::move(why);
  if (connection.proved) {
    events_.push_back({LinkEvent::Kind::lost, *connection.region, connection.why});
    connection.proved = false;
  }
  if (!connection.outgoing) return;
  Attempt& attempt = attempts_[*connection.region];
  attempt.under_way = false;
  attempt.last_failure = connection.why;
}

void Links::remove_broken() {
  std::erase_if(connections_, [](const auto& each) { return each->broken; });
}

}  // namespace trainyard::local_sgd
