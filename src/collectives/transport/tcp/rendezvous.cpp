// How the ranks meet. Everyone listens at its own endpoint first; then it connects to the ranks before it,
// one by one, and accepts those after it. Rank 0 connects to nobody, so it accepts at once; rank 1 needs only
// rank 0; and so on: the order cannot lock up. A hello goes both ways on each connection before it counts.
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

constexpr Duration connect_retry_interval = 50ms;  // a host that comes up late costs at most this much more
constexpr Duration connect_attempt_max = 3s;  // then look the name up again: the address may have changed
constexpr Duration stranger_hello_max = 10s;  // who connects and says nothing is not one of us
constexpr size_t strangers_max = 64;          // connections that have not said hello yet; further ones wait

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

// Compares without telling by its duration where the first difference is.
bool equal_values(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= unsigned(uint8_t(a[i]) ^ uint8_t(b[i]));
  return difference == 0;
}

bool send_whole(int descriptor, std::string_view bytes) {
  // A hello is far smaller than an empty socket's buffer: it goes at once or the connection is broken.
  return ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size());
}

// A hello as it trickles in on a connection that does not block.
class HelloReader {
 public:
  // Empty until the hello is whole. Never reads a byte beyond it.
  Result<std::optional<Hello>> read(int descriptor) {
    for (;;) {
      size_t wanted = frame_header_bytes - std::min(bytes_.size(), frame_header_bytes);
      if (wanted == 0) wanted = frame_header_bytes + length_ - bytes_.size();
      char buffer[frame_header_bytes + control_payload_bytes_max];
      const ssize_t got = ::recv(descriptor, buffer, wanted, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<Hello>{};
      if (got < 0) return from_errno("waiting for a hello");
      if (got == 0) return unavailable("closed before a hello");
      bytes_.append(buffer, size_t(got));
      if (bytes_.size() == frame_header_bytes) {
        HeaderBytes header_bytes;
        std::memcpy(header_bytes.data(), bytes_.data(), header_bytes.size());
        const FrameHeader header = TRY(decode_header(header_bytes));
        if (header.kind != FrameKind::hello || header.length == 0)
          return corrupt("the first frame is no hello");
        length_ = size_t(header.length);
      } else if (bytes_.size() == frame_header_bytes + length_) {
        return std::optional(TRY(decode_hello(std::string_view(bytes_).substr(frame_header_bytes))));
      }
    }
  }

 private:
  std::string bytes_;
  size_t length_ = 0;
};

class Rendezvous {
 public:
  explicit Rendezvous(TcpOptions options)
      : options_(std::move(options)),
        sockets_(options_.endpoints.size()),
        deadline_(SteadyClock::now() + options_.join_deadline) {}

  Result<std::unique_ptr<Transport>> meet() && {
    if (ranks() > 1) {
      TRY(listen().in("listening at " + text_of(own())));
      for (int peer = 0; peer < options_.rank; ++peer) TRY(connect_to(peer));
      TRY(accept_later_ranks());
    }
    return std::unique_ptr<Transport>(
        std::make_unique<TcpTransport>(std::move(options_), std::move(sockets_)));
  }

 private:
  int ranks() const { return int(options_.endpoints.size()); }
  const Endpoint& own() const { return options_.endpoints[size_t(options_.rank)]; }
  std::string our_hello() const {
    return encode(Hello{uint32_t(options_.rank), uint32_t(ranks()), options_.shared_value});
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
  bool late() const { return SteadyClock::now() >= deadline_; }

  Result<void> listen() {
    for (;;) {
      // Our own name may not be known yet, nor our address be there: both are worth waiting for.
      Error why;
      if (auto addresses = resolve(own())) {
        auto listener = bind_first(addresses->first);
        if (listener) {
          listener_ = *std::move(listener);
          return ok();
        }
        why = std::move(listener).error();
        if (why.kind != Kind::unavailable) return why;
      } else {
        why = std::move(addresses).error();
      }
      if (late()) return why;
      TRY(wait({}, connect_retry_interval));
    }
  }

  Result<Socket> bind_first(const addrinfo* address) {
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return from_errno("socket");
    const int on = 1;
    (void)::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket.descriptor(), address->ai_addr, address->ai_addrlen) != 0) {
      if (errno == EADDRNOTAVAIL) return unavailable("the address is not ours (yet)");
      return from_errno("bind");
    }
    if (::listen(socket.descriptor(), std::max(ranks(), 16)) != 0) return from_errno("listen");
    return socket;
  }

  Result<void> connect_to(int peer) {
    const std::string peer_name =
        "rank " + std::to_string(peer) + " (" + text_of(options_.endpoints[size_t(peer)]) + ")";
    for (;;) {
      auto socket = try_to_connect(peer);
      if (socket) {
        sockets_[size_t(peer)] = *std::move(socket);
        return ok();
      }
      if (socket.error().kind != Kind::unavailable) return std::move(socket).error().in(peer_name);
      if (late()) {
        return unavailable(peer_name + " did not answer within " +
                           std::to_string(options_.join_deadline.count()) + " ms: " + socket.error().message);
      }
      TRY(wait({}, connect_retry_interval));
    }
  }

  // Errors: unavailable where another try may help.
  Result<Socket> try_to_connect(int peer) {
    const auto addresses = TRY(resolve(options_.endpoints[size_t(peer)]));
    const addrinfo* address = addresses.first;
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return from_errno("socket");
    tune(socket.descriptor());
    if (::connect(socket.descriptor(), address->ai_addr, address->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) return unavailable(std::strerror(errno));
      pollfd writable{socket.descriptor(), POLLOUT, 0};
      TRY(wait(std::span(&writable, 1), connect_attempt_max));
      int error_number = writable.revents == 0 ? ETIMEDOUT : 0;
      socklen_t length = sizeof error_number;
      if (error_number == 0) ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error_number, &length);
      if (error_number != 0) return unavailable(std::strerror(error_number));
    }
    if (!send_whole(socket.descriptor(), our_hello())) return unavailable("it closed before our hello");

    HelloReader reader;
    while (!late()) {
      auto hello = reader.read(socket.descriptor());
      if (!hello && hello.error().kind == Kind::corrupt) return std::move(hello).error();
      if (!hello) return unavailable(hello.error().message);
      if (*hello) {
        if (!equal_values((*hello)->shared_value, options_.shared_value))
          return conflict("it belongs to another job");
        if (int((*hello)->ranks) != ranks() || int((*hello)->rank) != peer) {
          return conflict("it is rank " + std::to_string((*hello)->rank) + " of " +
                          std::to_string((*hello)->ranks));
        }
        return socket;
      }
      // The peer answers when it has met the ranks before it, which may take as long as they do.
      pollfd readable{socket.descriptor(), POLLIN, 0};
      TRY(wait(std::span(&readable, 1), connect_attempt_max));
    }
    return unavailable("it is there, but still waits for others");
  }

  struct Stranger {
    Socket socket;
    HelloReader reader;
    Deadline until;
  };

  Result<void> accept_later_ranks() {
    while (!complete()) {
      if (late()) {
        std::string missing;
        for (int peer = options_.rank + 1; peer < ranks(); ++peer) {
          if (sockets_[size_t(peer)]) continue;
          missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(peer) + " (" +
                     text_of(options_.endpoints[size_t(peer)]) + ")";
        }
        return unavailable(missing + " did not come within " +
                           std::to_string(options_.join_deadline.count()) + " ms");
      }
      std::vector<pollfd> events;
      for (const Stranger& stranger : strangers_) events.push_back({stranger.socket.descriptor(), POLLIN, 0});
      if (strangers_.size() < strangers_max) events.push_back({listener_.descriptor(), POLLIN, 0});
      TRY(wait(events, stranger_hello_max));
      hear_strangers();
      accept_stranger();
    }
    return ok();
  }

  bool complete() const {
    return std::all_of(sockets_.begin() + options_.rank + 1, sockets_.end(),
                       [](const Socket& s) { return bool(s); });
  }

  void accept_stranger() {
    if (strangers_.size() >= strangers_max) return;
    Socket socket(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    tune(socket.descriptor());
    strangers_.push_back({std::move(socket), {}, SteadyClock::now() + stranger_hello_max});
  }

  // Whoever said a right hello becomes a link; whoever cannot any more is closed; the rest stays.
  void hear_strangers() {
    std::vector<Stranger> still;
    for (Stranger& stranger : strangers_) {
      auto hello = stranger.reader.read(stranger.socket.descriptor());
      if (!hello) continue;
      if (!*hello) {
        if (SteadyClock::now() < stranger.until) still.push_back(std::move(stranger));
        continue;
      }
      const Hello& said = **hello;
      const bool ours = equal_values(said.shared_value, options_.shared_value) &&
                        int(said.ranks) == ranks() && int(said.rank) > options_.rank;
      // An answer even to those we refuse, without our value: then they can say what is wrong. A rank that
      // comes twice lost its first connection; the second one counts.
      const std::string answer =
          ours ? our_hello() : encode(Hello{uint32_t(options_.rank), uint32_t(ranks()), ""});
      if (send_whole(stranger.socket.descriptor(), answer) && ours) {
        sockets_[said.rank] = std::move(stranger.socket);
      }
    }
    strangers_ = std::move(still);
  }

  TcpOptions options_;
  std::vector<Socket> sockets_;
  const Deadline deadline_;
  Socket listener_;
  std::vector<Stranger> strangers_;
};

}  // namespace

Result<std::unique_ptr<Transport>> connect_tcp(TcpOptions options) {
  if (options.endpoints.empty()) return invalid("no endpoints");
  if (options.rank < 0 || size_t(options.rank) >= options.endpoints.size()) {
    return invalid("rank " + std::to_string(options.rank) + " is none of the " +
                   std::to_string(options.endpoints.size()) + " endpoints");
  }
  if (options.shared_value.size() > TcpOptions::shared_value_bytes_max)
    return invalid("the shared value is too long");
  return Rendezvous(std::move(options)).meet();
}

}  // namespace trainyard::collectives
