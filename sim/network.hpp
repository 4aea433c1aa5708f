// Network simulates the links between agents and the server: frames arrive in order, late, or never
// when the link is cut. A link may be half-open: one direction delivers nothing for a while, and
// the link looks open at both ends. Then TCP delivers what it buffered, or its timeouts end the
// link; the end that receives nothing detects this last.
//
// Threads: one. Lifetime: the world outlives the network; an agent that ends closes its link first.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "net/link.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {

using LinkNumber = uint64_t;  // 0: none

class Network {
 public:
  // Runs the server's code, and catches its crashes.
  using Guard = std::function<void(World::Action)>;
  struct AgentEnd {
    std::function<void(std::string frame)> frame;
    std::function<void()> closed;
  };

  Network(World& world, Guard guard) : world_(world), guard_(std::move(guard)) {}

  // -- the server's side
  void listen(net::LinkEvents events);
  // Ends the links of a server that has ended.
  void stop_listening();

  // -- the agents' side
  // Returns 0 when no server listens.
  LinkNumber connect(AgentEnd end);
  void send(LinkNumber number, std::string frame);
  void close(LinkNumber number);

  // Injects a fault: one open link ends, and its frames in transit are lost.
  void cut_one();
  // Injects a fault: one direction of an open link delivers nothing for this long.
  void half_open_one(Duration lasts);

 private:
  struct Connection;
  class ServerLink;

  void deliver(const std::shared_ptr<Connection>& connection, bool to_server, World::Action action);
  void end(std::shared_ptr<Connection> connection, const char* why);
  // Returns a delay that lasts at least until that direction delivers again.
  Duration delay_of(const Connection& connection, bool to_server);
  Duration delay();

  World& world_;
  Guard guard_;
  bool listening_ = false;
  uint64_t epoch_ = 0;  // number of the listening server
  net::LinkEvents events_;
  std::map<LinkNumber, std::shared_ptr<Connection>> connections_;
  LinkNumber last_ = 0;
};

}  // namespace trainyard::sim
