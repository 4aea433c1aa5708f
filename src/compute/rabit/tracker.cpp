// The tracker's thread reads the first messages of all connections at once, so that a peer that
// sends nothing delays no other. When all workers have started, it connects them one after another
// in the order of their ranks: each gets the addresses of its neighbours that already listen,
// connects to them, and then listens itself for later neighbours.
#include "rabit/tracker.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectives/transport/tcp/addresses.hpp"
#include "os/files.hpp"
#include "rabit/peer_socket.hpp"
#include "rabit/topology.hpp"
#include "rabit/worker_message.hpp"

namespace trainyard::rabit {
namespace {

constexpr int kBacklog = 1024;
constexpr int kUnknownPeersMax = 64;  // connections in addition to one for each worker
constexpr Duration kFirstMessageTimeout = 10s;
constexpr int kConnectTriesMax = 10;  // attempts of one worker to connect to its neighbours

struct Started {  // a worker that waits for its rank
  WorkerMessage message;
  std::string host;
  PeerSocket socket;
};

struct Listening {  // a connected worker to which other workers still have to connect
  std::string host;
  int32_t port = 0;
  size_t expected = 0;
};

struct Connection {  // a connection whose first message has not arrived yet
  os::File file;
  std::string host;
  std::chrono::nanoseconds deadline;
  WorkerMessageDecoder decoder;
  bool has_answer = false;
};

std::string host_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&address);
    ::inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&address);
    ::inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
  }
  // an IPv4 address mapped to IPv6, to which the library cannot connect
  const std::string_view host = text;
  return std::string(host.starts_with("::ffff:") ? host.substr(7) : host);
}

std::string name_of(const std::string& task_id, const std::string& host) {
  return "worker " + (task_id == "NULL" ? "" : task_id + " ") + "at " + host;
}

bool is_before(const Started& left, const Started& right) {
  const auto key = [](const Started& each) {
    const std::string& id = each.message.task_id;
    return std::tuple(id == "NULL", id.size(), std::string_view(id), std::string_view(each.host));
  };
  return key(left) < key(right);
}

}  // namespace

class Tracker::Impl {
 public:
  Impl(TrackerOptions options, Clock& clock, os::File listener, uint16_t port)
      : options_(std::move(options)),
        clock_(clock),
        listener_(std::move(listener)),
        port_(port),
        links_(topology(options_.workers)),
        thread_([this] { result_ = run(); }) {}
  ~Impl() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  uint16_t port() const { return port_; }
  void stop() { stop_ = true; }
  Result<void> wait() {
    if (thread_.joinable()) thread_.join();
    return result_;
  }

 private:
  Result<void> run() {
    auto done = serve();
    listener_.close();
    connections_.clear();
    started_.clear();
    return done;
  }

  Result<void> serve() {
    const auto deadline = clock_.monotonic() + options_.join_deadline;
    while (shut_down_.size() < size_t(options_.workers)) {
      if (stop_) return cancelled("the tracker was stopped");
      if (!has_ranks_ && clock_.monotonic() > deadline) return describe_missing();
      TRY(wait_for_bytes());
      TRY(read_connections());
      if (!has_ranks_ && started_.size() == size_t(options_.workers)) TRY(connect_all());
    }
    return ok();
  }

  Error describe_missing() const {
    std::string names;
    for (const Started& each : started_)
      names += (names.empty() ? ": " : ", ") + each.message.task_id;
    return unavailable(std::to_string(started_.size()) + " of " + std::to_string(options_.workers) +
                       " workers started within " + std::to_string(options_.join_deadline / 1s) +
                       " s" + names);
  }

  Result<void> wait_for_bytes() {
    std::vector<struct pollfd> polled{{listener_.descriptor(), POLLIN, 0}};
    for (const Connection& each : connections_)
      polled.push_back({each.file.descriptor(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), kStopCheckMilliseconds) < 0 && errno != EINTR)
      return from_errno("waiting for workers");
    if (polled[0].revents & POLLIN) accept_one();
    return ok();
  }

  void accept_one() {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    os::File file(::accept4(listener_.descriptor(), reinterpret_cast<sockaddr*>(&address), &size,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!file || connections_.size() >= size_t(options_.workers) + kUnknownPeersMax) return;
    connections_.push_back(
        {std::move(file), host_text(address), clock_.monotonic() + kFirstMessageTimeout, {}});
  }

  // Reads the bytes that have arrived. Closes connections that end, are late or send invalid
  // messages.
  Result<void> read_connections() {
    std::vector<Connection> waiting;
    for (Connection& each : std::exchange(connections_, {})) {
      auto message = read_some(each);
      if (!message) continue;
      if (*message) {
        TRY(take(std::move(each), **std::move(message)));
      } else if (clock_.monotonic() < each.deadline) {
        waiting.push_back(std::move(each));
      }
    }
    connections_ = std::move(waiting);
    return ok();
  }

  Result<std::optional<WorkerMessage>> read_some(Connection& connection) {
    char bytes[4096];
    const ssize_t got = ::recv(connection.file.descriptor(), bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<WorkerMessage>();
    if (got <= 0) return unavailable("closed its connection to the tracker");
    auto message = TRY(connection.decoder.push({bytes, size_t(got)}));
    if (connection.decoder.has_magic() && !connection.has_answer) {
      const std::string answer = encode_integer(kMagic);
      if (::send(connection.file.descriptor(), answer.data(), answer.size(), MSG_NOSIGNAL) !=
          ssize_t(answer.size()))
        return unavailable("closed its connection to the tracker");
      connection.has_answer = true;
    }
    return message;
  }

  Result<void> take(Connection connection, WorkerMessage message) {
    switch (message.command) {
      case Command::print:
        if (options_.print) options_.print(trim(message.text));
        return ok();
      case Command::shutdown:
        if (has_ranks_ && message.rank >= 0 && message.rank < options_.workers)
          shut_down_.insert(message.rank);
        return ok();
      case Command::recover:
        if (!has_ranks_) return ok();
        return unavailable(name_of(message.task_id, connection.host) +
                           " lost its connections: another worker of the training has ended");
      case Command::start:
        break;
    }
    if (has_ranks_ || (message.world_size != -1 && message.world_size != options_.workers))
      return ok();                                      // an unknown peer: its connection is closed
    std::erase_if(started_, [&](const Started& each) {  // the worker has restarted
      return message.task_id != "NULL" && each.message.task_id == message.task_id;
    });
    std::string early(connection.decoder.rest());
    started_.push_back({std::move(message), connection.host,
                        PeerSocket(std::move(connection.file), std::move(early))});
    return ok();
  }

  Result<void> connect_all() {
    std::ranges::sort(started_, is_before);
    has_ranks_ = true;
    std::map<int, Listening> listening;
    for (int rank = 0; rank < options_.workers; ++rank) {
      Started& worker = started_[size_t(rank)];
      TRY(connect(worker, rank, listening).in(name_of(worker.message.task_id, worker.host)));
    }
    started_.clear();
    return ok();
  }

  std::string describe_links(int rank) const {
    const RankLinks& links = links_[size_t(rank)];
    std::string bytes = encode_integer(rank) + encode_integer(links.parent) +
                        encode_integer(options_.workers) +
                        encode_integer(int32_t(links.neighbours.size()));
    for (const int each : links.neighbours) bytes += encode_integer(each);
    for (const int each : {links.previous, links.next})
      bytes += encode_integer(each == rank ? -1 : each);
    return bytes;
  }

  std::set<int> peers_of(int rank) const {
    const RankLinks& links = links_[size_t(rank)];
    std::set<int> peers(links.neighbours.begin(), links.neighbours.end());
    peers.insert({links.previous, links.next});
    peers.erase(rank);
    return peers;
  }

  // Removes the peers to which the worker reports a connection.
  Result<void> remove_good(PeerSocket& socket, const Waits& waits, std::set<int>& peers) {
    const int32_t good = TRY(socket.receive_integer(waits));
    if (good < 0 || size_t(good) > peers.size())
      return corrupt("sent an invalid number of connections: " + std::to_string(good));
    for (int32_t i = 0; i < good; ++i)
      if (peers.erase(TRY(socket.receive_integer(waits))) == 0)
        return corrupt("is connected to a rank that is not its neighbour");
    return ok();
  }

  Result<void> connect(Started& worker, int rank, std::map<int, Listening>& listening) {
    const Waits waits{clock_, stop_, options_.message_timeout};
    TRY(worker.socket.send(describe_links(rank), waits));
    for (int tries = 0; tries < kConnectTriesMax; ++tries) {
      auto peers = peers_of(rank);
      TRY(remove_good(worker.socket, waits, peers));
      std::vector<int> reachable;
      for (const int peer : peers)
        if (listening.contains(peer)) reachable.push_back(peer);
      const size_t expected = peers.size() - reachable.size();
      std::string bytes =
          encode_integer(int32_t(reachable.size())) + encode_integer(int32_t(expected));
      for (const int peer : reachable) {
        const Listening& there = listening.at(peer);
        bytes += encode_text(there.host) + encode_integer(there.port) + encode_integer(peer);
      }
      TRY(worker.socket.send(bytes, waits));
      // the worker could not connect to all
      if (TRY(worker.socket.receive_integer(waits)) != 0) continue;
      const int32_t port = TRY(worker.socket.receive_integer(waits));
      if (port < 1 || port > UINT16_MAX)
        return corrupt("sent an invalid port: " + std::to_string(port));
      for (const int peer : reachable)
        if (--listening.at(peer).expected == 0) listening.erase(peer);
      if (expected > 0) listening[rank] = {worker.host, port, expected};
      return ok();
    }
    return unavailable("could not connect to its neighbours");
  }

  const TrackerOptions options_;
  Clock& clock_;
  os::File listener_;
  const uint16_t port_;
  const std::vector<RankLinks> links_;
  std::atomic<bool> stop_ = false;
  // Used only by the tracker's thread:
  std::vector<Connection> connections_;
  std::vector<Started> started_;
  bool has_ranks_ = false;
  std::set<int> shut_down_;
  Result<void> result_ = ok();  // read after the thread has ended
  std::thread thread_;          // the last member, since the thread uses all of the above
};

Result<std::unique_ptr<Tracker>> Tracker::start(TrackerOptions options, Clock& clock) {
  if (options.workers < 1 || options.workers > kWorkersMax)
    return invalid("a tracker has 1 to " + std::to_string(kWorkersMax) + " workers, not " +
                   std::to_string(options.workers));
  const auto address = TRY(collectives::listen_address(options.endpoint));
  os::File listener(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return from_errno("making a socket");
  const int on = 1;
  ::setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.descriptor(), address.get(), address.length) != 0 ||
      ::listen(listener.descriptor(), kBacklog) != 0)
    return unavailable("listening at " + collectives::text_of(options.endpoint) + ": " +
                       std::strerror(errno));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    return from_errno("reading the port of the tracker");
  const uint16_t port =
      ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                        : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  return std::unique_ptr<Tracker>(
      new Tracker(std::make_unique<Impl>(std::move(options), clock, std::move(listener), port)));
}

Tracker::Tracker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tracker::~Tracker() = default;
uint16_t Tracker::port() const { return impl_->port(); }
Result<void> Tracker::wait() { return impl_->wait(); }
void Tracker::stop() { impl_->stop(); }

}  // namespace trainyard::rabit
