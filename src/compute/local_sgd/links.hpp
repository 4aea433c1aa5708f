// The connections between the leaders of regions: one between each two of them, that may break and come back.
//
// Everyone listens at its own endpoint and connects to the regions before it, again and again while they are not there.
// On each connection a hello goes both ways, then a proof of the group's secret, as between ranks (docs/formats/ranks.md);
// then messages; encrypted where all ask for it (docs/decisions/18). Nothing happens but inside wait(): a region that computes for minutes answers after that.
//
// A region whose process dies is seen at once, one whose machine or network goes after dead_peer_max.
//
// Threads: confined to one. Errors: cancelled; whatever keeps us from listening. What happens to a link is an event.
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
  std::vector<collectives::Endpoint> leaders;  // by region; the same everywhere
  uint32_t region = 0;                         // which of them we are
  std::string shared_value;
  bool encrypt = false;
  size_t message_bytes_max = 0;  // a longer one is none of ours, and costs its sender the link
  std::function<bool()> cancelled;

  static constexpr Duration cancel_check_interval = 100ms;  // what a person does not notice
  static constexpr Duration dead_peer_max = collectives::TcpOptions::dead_peer_max;
};

struct LinkEvent {
  enum class What { linked, lost, said } what = What::said;
  uint32_t region = 0;
  std::string text;  // what was said; or why it was lost
};

// All bytes that went over the links, headers and greetings included, TLS's and TCP's own not.
struct LinkTraffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

class Links {
 public:
  // Listens. Errors: unavailable while our own name or address is not there (yet).
  static Result<std::unique_ptr<Links>> open(LinkOptions options);
  ~Links();  // says goodbye
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // What happened, in order; waits for something at most so long.
  Result<std::vector<LinkEvent>> wait(Duration at_most);
  // Nothing where there is no link (any more). Sent by wait().
  void send(uint32_t region, std::string_view message);
  // Breaks a link; the next wait() says so.
  void close(uint32_t region, std::string why);

  bool all_sent() const;
  // Whether somebody is at our door, or opens us his: worth a short wait.
  bool greets() const;
  LinkTraffic traffic() const { return traffic_; }
  std::string name_of(uint32_t region) const;  // "region 1 (host:7831)"
  // Why the last try to reach a region before us failed.
  std::string last_failure(uint32_t region) const { return attempts_[region].last_failure; }

 private:
  using Moment = std::chrono::steady_clock::time_point;
  // A connection, from its first packet to a link.
  struct Connection {
    collectives::Wire wire;
    std::optional<uint32_t> region;  // known from its hello on, or from the start where we connected
    bool ours = false;
    bool connected = false;
    bool greeted = false;  // what TLS says first is over
    std::optional<collectives::Hello> hello;
    collectives::Hello our_hello;
    bool proved = false;
    std::string in;
    std::deque<std::string> out;  // bounded by what the council says: a message for each step of a round
    size_t out_sent = 0;          // of the first of them
    Moment until;                 // to prove it
    bool broken = false;
    std::string why;
  };
  struct Attempt {
    bool under_way = false;
    Moment next{};
    Duration pause{};
    std::string last_failure = "it was not tried";
  };

  Links(LinkOptions options, collectives::Socket listener, std::shared_ptr<const collectives::TlsKey> key);
  uint32_t regions() const { return uint32_t(options_.leaders.size()); }
  Connection* link_to(uint32_t region);
  void begin_attempts();
  void accept_strangers();
  void advance(Connection& connection);
  bool finish_connecting(Connection& connection);
  bool finish_greeting(Connection& connection);
  void push(Connection& connection);
  void pull(Connection& connection);
  // The next whole frame in what was read; false when there is none, or the connection is broken now.
  bool next_frame(Connection& connection, collectives::FrameKind& kind, std::string& payload);
  void hear(Connection& connection, collectives::FrameKind kind, std::string payload);
  void hear_hello(Connection& connection, std::string_view payload);
  void hear_proof(Connection& connection, std::string_view payload);
  void say_hello(Connection& connection);
  void say(Connection& connection, std::string bytes);
  void break_off(Connection& connection, std::string why);
  void bury();
  Result<void> sleep(Duration at_most);

  const LinkOptions options_;
  const std::string secret_;
  const std::shared_ptr<const collectives::TlsKey> key_;  // null: in the clear
  collectives::Socket listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Attempt> attempts_;  // by region, those before us
  std::vector<LinkEvent> events_;
  LinkTraffic traffic_;
};

}  // namespace trainyard::local_sgd
