// Implements the rendezvous of ranks. Each rank listens at its own endpoint and connects to some of
// the ranks before it, all at once, in one loop over poll (contacts.hpp): those that are a power of
// two away, around the circle. Rings, trees and halving need these connections, and through them a
// failure message reaches every rank in a few steps. 64 ranks need eleven connections each instead
// of 63. All other connections are made when the first message needs them.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "collectives/transport/tcp/addresses.hpp"
#include "collectives/transport/tcp/contacts.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

constexpr Duration kListenRetry = 50ms;  // retries while this rank's address is not configured yet

class Rendezvous {
 public:
  Rendezvous(TcpOptions options, std::shared_ptr<const TlsKey> key, Socket listener, bool star)
      : options_(std::make_unique<TcpOptions>(std::move(options))),
        key_(std::move(key)),
        wires_(options_->endpoints.size()),
        deadline_(SteadyClock::now() + options_->join_deadline),
        listener_(std::move(listener)),
        star_(star) {}

  Result<std::unique_ptr<TcpTransport>> connect() && {
    const bool listens = ranks() > 1 && (!star_ || options_->rank == 0);
    if (listens && !listener_) TRY(listen().in("listening at " + text_of(own_endpoint())));
    contacts_ = std::make_unique<Contacts>(*options_, std::move(key_), std::move(listener_));
    for (int peer = 0; peer < ranks(); ++peer) {
      if (wanted(peer)) contacts_->want(peer, 0);
    }
    while (!complete()) {
      if (late()) return missing_ranks();
      if (auto came = poll_contacts(); !came) return std::move(came).error();
    }
    auto transport = std::make_unique<TcpTransport>(std::move(options_), std::move(contacts_),
                                                    std::move(wires_));
    if (!star_)
      TRY(transport->await_all(std::chrono::ceil<Duration>(deadline_ - SteadyClock::now())));
    return transport;
  }

 private:
  int ranks() const { return int(options_->endpoints.size()); }
  const Endpoint& own_endpoint() const { return options_->endpoints[size_t(options_->rank)]; }
  bool late() const { return SteadyClock::now() >= deadline_; }
  std::string name_of(int peer) const {
    const Endpoint& endpoint = options_->endpoints[size_t(peer)];
    return "rank " + std::to_string(peer) +
           (endpoint.host.empty() ? "" : " (" + text_of(endpoint) + ")");
  }
  bool wanted(int peer) const {
    if (peer == options_->rank) return false;
    if (star_) return peer == 0 || options_->rank == 0;
    return are_neighbours(peer, options_->rank, ranks());
  }
  bool complete() const {
    for (int peer = 0; peer < ranks(); ++peer) {
      if (wanted(peer) && !wires_[size_t(peer)]) return false;
    }
    return true;
  }

  Error missing_ranks() {
    std::string missing;
    int first = -1;
    for (int peer = 0; peer < ranks(); ++peer) {
      if (!wanted(peer) || wires_[size_t(peer)]) continue;
      missing += (missing.empty() ? "" : ", ") + name_of(peer);
      if (peer < options_->rank) missing += " [" + contacts_->last_failure(peer) + "]";
      if (first < 0) first = peer;
    }
    Error error = unavailable(missing + " did not join within " +
                              std::to_string(options_->join_deadline.count()) + " ms");
    // Reports the failure to the neighbours, and through them to the other ranks.
    TcpTransport(std::move(options_), std::move(contacts_), std::move(wires_)).fail(error, first);
    return error;
  }

  Result<void> poll_contacts() {
    std::vector<pollfd> events;
    contacts_->add_events(events);
    TRY(wait(events, contacts_->sleep_max()));
    std::vector<Contacts::Proved> proved;
    const auto peer_error = contacts_->advance(proved);
    // A rank that connects twice has lost its first connection; the second one counts.
    for (auto& each : proved) {
      if (each.socket == 0) wires_[size_t(each.peer)] = std::move(each.wire);
    }
    if (peer_error) return Error(peer_error->error).in(name_of(peer_error->peer));
    return ok();
  }

  // Waits for any of the events, until `at_most` or the deadline is over. Checks for cancellation.
  Result<void> wait(std::span<pollfd> events, Duration at_most) {
    const auto until = std::min(deadline_, SteadyClock::now() + at_most);
    for (;;) {
      if (options_->cancelled && options_->cancelled())
        return cancelled("cancelled while waiting for other ranks");
      const auto left = std::chrono::ceil<Duration>(until - SteadyClock::now());
      if (left <= 0ms) return ok();
      const int ready =
          ::poll(events.data(), events.size(),
                 int(std::min(left, Duration(TcpOptions::kCancelCheckInterval)).count()));
      if (ready < 0 && errno != EINTR) return from_errno("waiting for connections");
      if (ready > 0) return ok();
    }
  }

  Result<void> listen() {
    for (;;) {
      // The name of this host may not be resolvable yet, or its address not configured: waits for
      // both.
      auto listener = listen_at(own_endpoint(), ranks());
      if (listener) {
        listener_ = *std::move(listener);
        return ok();
      }
      if (late() || listener.error().kind != Kind::unavailable) return std::move(listener).error();
      TRY(wait({}, kListenRetry));
    }
  }

  std::unique_ptr<TcpOptions> options_;  // on the heap, since contacts_ refers to it
  std::shared_ptr<const TlsKey> key_;    // shared with the contacts; the last one frees it
  std::vector<Wire> wires_;
  const Deadline deadline_;
  Socket listener_;
  const bool star_;
  std::unique_ptr<Contacts> contacts_;
};

}  // namespace

bool are_neighbours(int a, int b, int ranks) {
  const int apart = std::abs(a - b);
  for (int distance = 1; distance < ranks; distance *= 2) {
    if (apart == distance || ranks - apart == distance) return true;
  }
  return false;
}

Result<Socket> listen_at(const Endpoint& endpoint, int backlog) {
  const Address address = TRY(listen_address(endpoint));
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return from_errno("opening a socket");
  const int on = 1;
  const int off = 0;
  if (address.family() == AF_INET6 && hosts_of(endpoint).size() > 1)
    // both versions
    (void)::setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  (void)::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.descriptor(), address.get(), address.length) != 0) {
    if (errno == EADDRNOTAVAIL)
      return unavailable("the address does not belong to this host (yet)");
    return from_errno("binding a socket");
  }
  if (::listen(socket.descriptor(), std::max(backlog, 16)) != 0)
    return from_errno("listening for connections");
  return socket;
}

Result<uint16_t> port_of(const Socket& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return from_errno("reading the port");
  // The port has the same offset for both address families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

namespace {

Result<void> check(const TcpOptions& options) {
  if (options.endpoints.empty()) return invalid("joining a group: the list of endpoints is empty");
  if (options.rank < 0 || size_t(options.rank) >= options.endpoints.size()) {
    return invalid("rank " + std::to_string(options.rank) + " is out of range for " +
                   std::to_string(options.endpoints.size()) + " endpoints");
  }
  if (options.shared_value.size() > TcpOptions::kSharedValueBytesMax)
    return invalid("the shared value is too long");
  if (options.sockets_per_peer < 1 || options.sockets_per_peer > TcpOptions::kSocketsPerPeerMax)
    return invalid("sockets_per_peer is " + std::to_string(options.sockets_per_peer) +
                   ", but must be between 1 and " + std::to_string(TcpOptions::kSocketsPerPeerMax));
  return ok();
}

Result<std::shared_ptr<const TlsKey>> key_for(const TcpOptions& options) {
  if (!options.encrypt) return std::shared_ptr<const TlsKey>();
  if (options.shared_value.empty()) return invalid("encryption needs a shared secret");
  return TlsKey::make(options.shared_value);
}

}  // namespace

Result<std::unique_ptr<TcpTransport>> connect_tcp(TcpOptions options, Socket listener) {
  TRY(check(options));
  auto key = TRY(key_for(options));
  return Rendezvous(std::move(options), std::move(key), std::move(listener), false).connect();
}

Result<std::unique_ptr<TcpTransport>> connect_star(TcpOptions options) {
  TRY(check(options));
  options.sockets_per_peer = 1;
  auto key = TRY(key_for(options));
  return Rendezvous(std::move(options), std::move(key), {}, true).connect();
}

}  // namespace trainyard::collectives
