// How the ranks meet. Everyone listens at its own endpoint and connects to the ranks before it, all at once, in
// one loop over poll. On each connection a hello goes both ways, then a proof of membership: whoever connected
// speaks first, so a stranger learns nothing from a port but that it is one of ours.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

constexpr Duration connect_retry_first = 2ms;  // ranks that start together miss each other by this
constexpr Duration connect_retry_max = 50ms;   // a host that comes up late costs at most this much more
constexpr Duration connect_attempt_max = 3s;   // then look the name up again: the address may have changed
constexpr Duration stranger_hello_max = 10s;   // who connects and says nothing is not one of us
constexpr size_t strangers_max = 256;          // connections that have not said hello yet; further ones wait

std::string text_of(const Endpoint& endpoint) { return endpoint.host + ":" + std::to_string(endpoint.port); }

struct AddressList {
  addrinfo* first = nullptr;
  AddressList() = default;
  AddressList(AddressList&& other) noexcept : first(std::exchange(other.first, nullptr)) {}
  ~AddressList() {
    if (first) ::freeaddrinfo(first);
  }
};

Result<AddressList> resolve(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  AddressList list;
  const int code =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list.first);
  if (code != 0) return unavailable("looking up " + endpoint.host + ": " + ::gai_strerror(code));
  return list;
}

void tune(int descriptor) {
  const auto set = [descriptor](int level, int name, int value) {
    (void)::setsockopt(descriptor, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);  // the last small frame of a step must not wait for more
  // Probes after 5 s of silence, every 3 s, five times: dead_peer_max together.
  static_assert(TcpOptions::dead_peer_max == 20s);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 3);
  set(IPPROTO_TCP, TCP_KEEPCNT, 5);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, int(TcpOptions::dead_peer_max.count()));
}

bool send_whole(int descriptor, std::string_view bytes) {
  // A hello is far smaller than an empty socket's buffer: it goes at once or the connection is broken.
  return ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size());
}

Nonce fresh_nonce() {
  Nonce nonce;
  CHECK(::getrandom(nonce.data(), nonce.size(), 0) == ssize_t(nonce.size()),
        "the kernel has 16 random bytes");
  return nonce;
}

// One control frame as it trickles in on a connection that does not block.
class FrameReader {
 public:
  // The payload of the next frame; empty until it is whole. Never reads a byte beyond it.
  // Errors: corrupt; unavailable when the connection is closed; what the peer says when it has failed.
  Result<std::optional<std::string>> read(int descriptor, FrameKind kind) {
    for (;;) {
      size_t wanted = frame_header_bytes - std::min(bytes_.size(), frame_header_bytes);
      if (wanted == 0) wanted = frame_header_bytes + length_ - bytes_.size();
      char buffer[frame_header_bytes + control_payload_bytes_max];
      const ssize_t got = ::recv(descriptor, buffer, wanted, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<std::string>{};
      if (got < 0) return from_errno("waiting for a hello");
      if (got == 0) return unavailable("it closed the connection");
      bytes_.append(buffer, size_t(got));
      if (bytes_.size() == frame_header_bytes) {
        HeaderBytes header_bytes;
        std::memcpy(header_bytes.data(), bytes_.data(), header_bytes.size());
        const FrameHeader header = TRY(decode_header(header_bytes));
        if (header.kind != kind || header.length == 0) return corrupt("a frame that is not due");
        length_ = size_t(header.length);
      } else if (bytes_.size() == frame_header_bytes + length_) {
        std::string payload = bytes_.substr(frame_header_bytes);
        bytes_.clear();
        return std::optional(std::move(payload));
      }
    }
  }

 private:
  std::string bytes_;
  size_t length_ = 0;
};

class Rendezvous {
 public:
  Rendezvous(TcpOptions options, Socket listener, bool star = false)
      : options_(std::move(options)),
        sockets_(options_.endpoints.size()),
        attempts_(size_t(options_.rank)),
        deadline_(SteadyClock::now() + options_.join_deadline),
        listener_(std::move(listener)),
        star_(star) {}

  Result<std::unique_ptr<TcpTransport>> meet() && {
    if (ranks() > 1 && !listener_ && (!star_ || options_.rank == 0))
      TRY(listen().in("listening at " + text_of(own())));
    while (!complete()) {
      if (late()) return nobody_came();
      begin_attempts();
      TRY(wait_for_contacts());
      TRY(hear_contacts());
      accept_contact();
    }
    return std::make_unique<TcpTransport>(std::move(options_), std::move(sockets_));
  }

 private:
  // A connection that has not proved to be a link yet. `peer` is known where we connected to it, and else from
  // its hello on.
  struct Contact {
    Socket socket;
    int peer = -1;
    bool ours = false;       // we connected
    bool connected = false;  // the connection stands, and our hello was sent
    std::optional<Hello> hello;
    Hello our_hello;
    FrameReader reader;
    Deadline until;
  };
  // Our tries to connect to a rank before us.
  struct Attempt {
    bool under_way = false;
    Deadline next{};
    Duration pause = connect_retry_first;
    std::string last_failure = "it was not tried";
  };

  int ranks() const { return int(options_.endpoints.size()); }
  const Endpoint& own() const { return options_.endpoints[size_t(options_.rank)]; }
  bool late() const { return SteadyClock::now() >= deadline_; }
  std::string name_of(int peer) const {
    const Endpoint& endpoint = options_.endpoints[size_t(peer)];
    return "rank " + std::to_string(peer) + (endpoint.host.empty() ? "" : " (" + text_of(endpoint) + ")");
  }
  bool wanted(int peer) const { return peer != options_.rank && (!star_ || peer == 0 || options_.rank == 0); }
  bool complete() const {
    for (int peer = 0; peer < ranks(); ++peer) {
      if (wanted(peer) && !sockets_[size_t(peer)]) return false;
    }
    return true;
  }

  Error nobody_came() const {
    std::string missing;
    for (int peer = 0; peer < ranks(); ++peer) {
      if (!wanted(peer) || sockets_[size_t(peer)]) continue;
      missing += (missing.empty() ? "" : ", ") + name_of(peer);
      if (peer < options_.rank) missing += " [" + attempts_[size_t(peer)].last_failure + "]";
    }
    return unavailable(missing + " did not come within " + std::to_string(options_.join_deadline.count()) +
                       " ms");
  }

  // Waits for any of the events, at most `at_most`, at most to the deadline; looks for cancellation.
  Result<void> wait(std::span<pollfd> events, Duration at_most) {
    const auto until = std::min(deadline_, SteadyClock::now() + at_most);
    for (;;) {
      if (options_.cancelled && options_.cancelled())
        return cancelled("told to stop while waiting for other ranks");
      const auto left = std::chrono::ceil<Duration>(until - SteadyClock::now());
      if (left <= 0ms) return ok();
      const int ready = ::poll(events.data(), events.size(),
                               int(std::min(left, Duration(TcpOptions::cancel_check_interval)).count()));
      if (ready < 0 && errno != EINTR) return from_errno("poll");
      if (ready > 0) return ok();
    }
  }

  Result<void> listen() {
    for (;;) {
      // Our own name may not be known yet, nor our address be there: both are worth waiting for.
      auto listener = listen_at(own(), ranks());
      if (listener) {
        listener_ = *std::move(listener);
        return ok();
      }
      if (late() || listener.error().kind != Kind::unavailable) return std::move(listener).error();
      TRY(wait({}, connect_retry_max));
    }
  }

  void begin_attempts() {
    for (int peer = 0; peer < options_.rank; ++peer) {
      Attempt& attempt = attempts_[size_t(peer)];
      if (!wanted(peer) || sockets_[size_t(peer)] || attempt.under_way || SteadyClock::now() < attempt.next)
        continue;
      attempt.next = SteadyClock::now() + attempt.pause;
      attempt.pause = std::min(attempt.pause * 2, connect_retry_max);
      auto socket = begin_connecting(peer);
      if (!socket) {
        attempt.last_failure = socket.error().message;
        continue;
      }
      attempt.under_way = true;
      Contact contact;
      contact.socket = *std::move(socket);
      contact.peer = peer;
      contact.ours = true;
      contact.until = SteadyClock::now() + connect_attempt_max;
      contacts_.push_back(std::move(contact));
    }
  }

  Result<Socket> begin_connecting(int peer) {
    const auto addresses = TRY(resolve(options_.endpoints[size_t(peer)]));
    const addrinfo* address = addresses.first;
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return from_errno("socket");
    tune(socket.descriptor());
    if (::connect(socket.descriptor(), address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
      return unavailable(std::strerror(errno));
    }
    return socket;
  }

  Result<void> wait_for_contacts() {
    std::vector<pollfd> events;
    Duration at_most = TcpOptions::cancel_check_interval;
    for (const Contact& contact : contacts_)
      events.push_back(
          {contact.socket.descriptor(), short(contact.ours && !contact.connected ? POLLOUT : POLLIN), 0});
    if (listener_ && accepted() < strangers_max) events.push_back({listener_.descriptor(), POLLIN, 0});
    for (int peer = 0; peer < options_.rank; ++peer) {
      const Attempt& attempt = attempts_[size_t(peer)];
      if (!wanted(peer) || sockets_[size_t(peer)] || attempt.under_way) continue;
      at_most = std::min(
          at_most, std::max(Duration(1), std::chrono::ceil<Duration>(attempt.next - SteadyClock::now())));
    }
    return wait(events, at_most);
  }

  size_t accepted() const {
    return size_t(
        std::count_if(contacts_.begin(), contacts_.end(), [](const Contact& c) { return !c.ours; }));
  }

  void accept_contact() {
    // As many as wait: 64 ranks knock at the same time.
    while (listener_ && accepted() < strangers_max) {
      Socket socket(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      tune(socket.descriptor());
      Contact contact;
      contact.socket = std::move(socket);
      contact.connected = true;
      contact.until = SteadyClock::now() + stranger_hello_max;
      contacts_.push_back(std::move(contact));
    }
  }

  // Whoever proved its membership becomes a link; whoever cannot any more is closed; the rest stays.
  Result<void> hear_contacts() {
    std::vector<Contact> still;
    for (Contact& contact : std::exchange(contacts_, {})) {
      auto proved = hear(contact);
      if (proved && *proved) {
        // A rank that comes twice lost its first connection; the second one counts.
        sockets_[size_t(contact.peer)] = std::move(contact.socket);
        continue;
      }
      const bool waits = proved && SteadyClock::now() < contact.until;
      if (waits) {
        still.push_back(std::move(contact));
        continue;
      }
      if (!contact.ours) continue;  // a stranger, or a rank that will come again
      Attempt& attempt = attempts_[size_t(contact.peer)];
      attempt.under_way = false;
      attempt.last_failure = proved ? "it is there, but does not answer" : proved.error().message;
      if (!proved && proved.error().kind != Kind::unavailable)
        return std::move(proved).error().in(name_of(contact.peer));
    }
    contacts_ = std::move(still);
    return ok();
  }

  // True when the peer has proved its membership. Errors: unavailable where another try may help.
  Result<bool> hear(Contact& contact) {
    if (!contact.connected && !TRY(finish_connecting(contact))) return false;
    if (!contact.hello) {
      const auto payload = TRY(contact.reader.read(contact.socket.descriptor(), FrameKind::hello));
      if (!payload) return false;
      contact.hello = TRY(decode_hello(*payload));
      TRY(answer_hello(contact));
    }
    const auto payload = TRY(contact.reader.read(contact.socket.descriptor(), FrameKind::proof));
    if (!payload) return false;
    const Digest proof = TRY(decode_proof(*payload));
    if (equal_in_constant_time(proof, prove(options_.shared_value, *contact.hello, contact.our_hello)))
      return true;
    return conflict("it belongs to another job: it does not know this group's secret");
  }

  Result<bool> finish_connecting(Contact& contact) {
    pollfd writable{contact.socket.descriptor(), POLLOUT, 0};
    if (::poll(&writable, 1, 0) <= 0) return false;
    int error_number = 0;
    socklen_t length = sizeof error_number;
    ::getsockopt(contact.socket.descriptor(), SOL_SOCKET, SO_ERROR, &error_number, &length);
    if (error_number != 0) return unavailable(std::strerror(error_number));
    contact.connected = true;
    contact.until = SteadyClock::now() + connect_attempt_max;
    contact.our_hello = {uint32_t(options_.rank), uint32_t(ranks()), fresh_nonce()};
    if (!send_whole(contact.socket.descriptor(), encode(contact.our_hello)))
      return unavailable("it closed before our hello");
    return true;
  }

  Result<void> answer_hello(Contact& contact) {
    const Hello& said = *contact.hello;
    if (!contact.ours) {
      // An answer even to those whom we refuse: then they can say what is wrong.
      contact.our_hello = {uint32_t(options_.rank), uint32_t(ranks()), fresh_nonce()};
      if (!send_whole(contact.socket.descriptor(), encode(contact.our_hello)))
        return unavailable("it closed");
      if (int(said.ranks) != ranks() || int(said.rank) <= options_.rank)
        return conflict("it is no rank of ours");
      contact.peer = int(said.rank);
    } else if (int(said.ranks) != ranks() || int(said.rank) != contact.peer) {
      return conflict("it is rank " + std::to_string(said.rank) + " of " + std::to_string(said.ranks));
    }
    const Digest proof = prove(options_.shared_value, contact.our_hello, said);
    if (!send_whole(contact.socket.descriptor(), encode_proof(proof))) return unavailable("it closed");
    return ok();
  }

  TcpOptions options_;
  std::vector<Socket> sockets_;
  std::vector<Attempt> attempts_;  // by rank, of those before us
  const Deadline deadline_;
  Socket listener_;
  const bool star_;
  std::vector<Contact> contacts_;
};

}  // namespace

Result<Socket> listen_at(const Endpoint& endpoint, int backlog) {
  const auto addresses = TRY(resolve(endpoint));
  const addrinfo* address = addresses.first;
  Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return from_errno("socket");
  const int on = 1;
  (void)::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.descriptor(), address->ai_addr, address->ai_addrlen) != 0) {
    if (errno == EADDRNOTAVAIL) return unavailable("the address is not ours (yet)");
    return from_errno("bind");
  }
  if (::listen(socket.descriptor(), std::max(backlog, 16)) != 0) return from_errno("listen");
  return socket;
}

Result<uint16_t> port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return from_errno("getsockname");
  // The port lies at the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

namespace {

Result<void> check(const TcpOptions& options) {
  if (options.endpoints.empty()) return invalid("no endpoints");
  if (options.rank < 0 || size_t(options.rank) >= options.endpoints.size()) {
    return invalid("rank " + std::to_string(options.rank) + " is none of the " +
                   std::to_string(options.endpoints.size()) + " endpoints");
  }
  if (options.shared_value.size() > TcpOptions::shared_value_bytes_max)
    return invalid("the shared value is too long");
  return ok();
}

}  // namespace

Result<std::unique_ptr<TcpTransport>> connect_tcp(TcpOptions options, Socket listener) {
  TRY(check(options));
  return Rendezvous(std::move(options), std::move(listener)).meet();
}

Result<std::unique_ptr<TcpTransport>> connect_star(TcpOptions options) {
  TRY(check(options));
  return Rendezvous(std::move(options), {}, true).meet();
}

}  // namespace trainyard::collectives
