// Connects the leaders of regions. There is one link between each two of them, which is made again
// after it breaks.
//
// Each leader listens at its own endpoint and connects to the regions with lower numbers,
// repeatedly until it succeeds. On each connection both sides send a hello and then a proof of the
// shared secret, as ranks do (docs/formats/ranks.md); messages follow. They are encrypted if all
// regions have that option (docs/decisions/18). All I/O happens inside wait(): a region that
// computes for minutes answers afterwards.
//
// The end of a region's process is noticed at once; a failure of its machine or network after
// kDeadPeerMax.
//
// Threads: confined to one. Errors: cancelled; errors of listening. Failures of a link are events.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "collectives/group.hpp"
#include "collectives/transport/tcp/frame.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"
#include "collectives/transport/tcp/wire.hpp"

namespace trainyard::local_sgd {

struct LinkOptions {
  std::vector<collectives::Endpoint> leaders;  // by region; equal in all regions
  uint32_t region = 0;                         // index of this region in `leaders`
  std::string shared_value;
  bool encrypt = false;
  size_t message_bytes_max = 0;  // a longer message closes the link
  std::function<bool()> cancelled;

  static constexpr Duration kCancelCheckInterval = 100ms;  // short enough to be unnoticeable
  static constexpr Duration kDeadPeerMax = collectives::TcpOptions::kDeadPeerMax;
};

struct LinkEvent {
  enum class Kind { linked, lost, message } kind = Kind::message;
  uint32_t region = 0;
  std::string text;  // the message, or why the link was lost
};

// Bytes over all links, with frame headers and handshakes, without the overhead of TLS and TCP.
struct LinkTraffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

class Links {
 public:
  // Listens. Errors: unavailable while this region's host name does not resolve or its address is
  // not configured yet.
  static Result<std::unique_ptr<Links>> open(LinkOptions options);
  ~Links();  // sends goodbye frames
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // Returns the events in order; waits at most `at_most` for the first one.
  Result<std::vector<LinkEvent>> wait(Duration at_most);
  // Queues a message, which wait() sends. Without a link, the message is dropped.
  void send(uint32_t region, std::string_view message);
  // Closes a link; the next wait() reports it.
  void close(uint32_t region, std::string why);

  bool all_sent() const;
  // Returns true while a handshake with another region is in progress, which is worth a short wait.
  bool is_handshaking() const;
  LinkTraffic traffic() const { return traffic_; }
  std::string name_of(uint32_t region) const;  // "region 1 (host:7831)"
  // Returns why the last attempt to connect to a region failed. Requires: region < this region.
  std::string last_failure(uint32_t region) const { return attempts_[region].last_failure; }

 private:
  using Moment = std::chrono::steady_clock::time_point;
  // A connection, from its first packet until it is a link.
  struct Connection {
    collectives::Wire wire;
    // known from the start if this side connects, else after the peer's hello
    std::optional<uint32_t> region;
    bool outgoing = false;  // this side connects
    bool connected = false;
    bool secured = false;  // the TLS handshake is over, or not needed
    std::optional<collectives::Hello> hello;
    collectives::Hello our_hello;
    bool proved = false;
    std::string in;
    std::deque<std::string> out;  // bounded by the messages of a RegionGroup: a few for each round
    size_t out_sent = 0;          // bytes of out.front() sent so far
    Moment until;                 // deadline of the handshake
    bool broken = false;
    std::string why;
  };
  struct Attempt {
    bool under_way = false;
    Moment next{};
    Duration pause{};
    std::string last_failure = "no attempt was made";
  };

  Links(LinkOptions options, collectives::Socket listener,
        std::shared_ptr<const collectives::TlsKey> key);
  uint32_t regions() const { return uint32_t(options_.leaders.size()); }
  Connection* link_to(uint32_t region);
  void begin_attempts();
  void accept_connections();
  void advance(Connection& connection);
  bool finish_connecting(Connection& connection);
  bool finish_handshake(Connection& connection);
  void push(Connection& connection);
  void pull(Connection& connection);
  // Removes the next whole frame from the bytes that were read. Returns false if there is none, or
  // if the connection is now broken.
  bool next_frame(Connection& connection, collectives::FrameKind& kind, std::string& payload);
  void handle(Connection& connection, collectives::FrameKind kind, std::string payload);
  void handle_hello(Connection& connection, std::string_view payload);
  void handle_proof(Connection& connection, std::string_view payload);
  void send_hello(Connection& connection);
  void queue(Connection& connection, std::string bytes);
  void break_off(Connection& connection, std::string why);
  void remove_broken();
  Result<void> sleep(Duration at_most);

  const LinkOptions options_;
  const std::string secret_;
  const std::shared_ptr<const collectives::TlsKey> key_;  // null: not encrypted
  collectives::Socket listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Attempt> attempts_;  // by region; lower regions only
  std::vector<LinkEvent> events_;
  LinkTraffic traffic_;
};

}  // namespace trainyard::local_sgd
