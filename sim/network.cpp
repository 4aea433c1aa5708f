#include "sim/network.hpp"

namespace trainyard::sim {

struct Network::Connection {
  LinkNumber number = 0;
  uint64_t epoch = 0;
  bool open = true;
  AgentEnd end;
  std::shared_ptr<net::Link> link;
  // The arrival time of the last frame, in each direction: frames do not overtake each other.
  Duration last_up{}, last_down{};
  Duration silent_up_until{}, silent_down_until{};  // while the link is half-open
};

class Network::ServerLink final : public net::Link {
 public:
  ServerLink(Network& network, std::weak_ptr<Connection> connection)
      : network_(network), connection_(std::move(connection)) {}
  void send(std::string frame) override {
    const auto connection = connection_.lock();
    if (!connection || !connection->open) return;
    network_.deliver(connection, false,
                     [connection, frame = std::move(frame)] { connection->end.frame(frame); });
  }
  void close() override {
    if (const auto connection = connection_.lock())
      network_.end(connection, "the server closes it");
  }

 private:
  Network& network_;
  std::weak_ptr<Connection> connection_;
};

Duration Network::delay() {
  // Usually a few milliseconds; sometimes the link is slow.
  return world_.fault(50) ? world_.between(100ms, 3000ms) : world_.between(0ms, 3ms);
}

Duration Network::delay_of(const Connection& connection, bool to_server) {
  const Duration until = to_server ? connection.silent_up_until : connection.silent_down_until;
  return std::max(delay(), until - world_.elapsed());
}

void Network::deliver(const std::shared_ptr<Connection>& connection, bool to_server,
                      World::Action action) {
  if (world_.fault(200)) return end(connection, "cut in mid-frame");
  Duration& last = to_server ? connection->last_up : connection->last_down;
  last = std::max(last, world_.elapsed() + delay_of(*connection, to_server));
  world_.after(last - world_.elapsed(), [connection, action = std::move(action)] {
    if (connection->open) action();
  });
}

void Network::listen(net::LinkEvents events) {
  events_ = std::move(events);
  listening_ = true;
  ++epoch_;
}

void Network::stop_listening() {
  listening_ = false;
  ++epoch_;
  const auto connections = connections_;
  for (const auto& [number, connection] : connections) end(connection, "the server has ended");
  events_ = {};
}

LinkNumber Network::connect(AgentEnd agent_end) {
  if (!listening_) return 0;
  auto connection = std::make_shared<Connection>();
  connection->number = ++last_;
  connection->epoch = epoch_;
  connection->end = std::move(agent_end);
  connection->link = std::allocate_shared<ServerLink>(
      std::pmr::polymorphic_allocator<ServerLink>(&world_.in_order), *this, connection);
  connections_[connection->number] = connection;
  deliver(connection, true, [this, connection] {
    guard_([=, this] {
      if (connection->epoch == epoch_) events_.opened(connection->link);
    });
  });
  return connection->number;
}

void Network::send(LinkNumber number, std::string frame) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  const auto connection = found->second;
  deliver(connection, true, [this, connection, frame = std::move(frame)] {
    guard_([=, this] {
      if (connection->epoch == epoch_) events_.frame(connection->link, frame);
    });
  });
}

void Network::close(LinkNumber number) {
  const auto found = connections_.find(number);
  if (found != connections_.end()) end(found->second, "the agent closes it");
}

void Network::cut_one() {
  if (connections_.empty()) return;
  auto chosen = connections_.begin();
  std::advance(chosen, ptrdiff_t(world_.random.below(connections_.size())));
  world_.trace("network", "link " + std::to_string(chosen->first) + " is cut");
  end(chosen->second, "cut");
}

void Network::half_open_one(Duration lasts) {
  if (connections_.empty()) return;
  auto chosen = connections_.begin();
  std::advance(chosen, ptrdiff_t(world_.random.below(connections_.size())));
  const auto connection = chosen->second;
  const bool up = world_.random.chance(2);
  world_.trace("network", "link " + std::to_string(connection->number) + " delivers nothing to " +
                              (up ? "the server" : "the agent") + " for " +
                              std::to_string(lasts.count() / 1000) + " s");
  (up ? connection->silent_up_until : connection->silent_down_until) = world_.elapsed() + lasts;
  if (world_.random.chance(2))
    world_.after(lasts, [this, connection] { end(connection, "timed out"); });
}

// Ends the link. Each end detects this after its own delay; frames in transit are lost.
void Network::end(std::shared_ptr<Connection> connection, const char* why) {
  if (!connection->open) return;
  connection->open = false;
  connections_.erase(connection->number);
  world_.after(delay_of(*connection, false), [connection] { connection->end.closed(); });
  world_.after(delay_of(*connection, true), [this, connection, why] {
    guard_([=, this] {
      if (connection->epoch == epoch_) events_.closed(connection->link, unavailable(why));
      connection->link.reset();
    });
  });
}

}  // namespace trainyard::sim
