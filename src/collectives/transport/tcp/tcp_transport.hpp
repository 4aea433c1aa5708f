// Ranks on different hosts: one TCP connection between each two of them, so that everyone sees everyone die.
//
// How failure travels. A peer's process that dies closes its connections: every rank that waits sees it at
// once. A peer's machine that vanishes stops answering keepalive probes (TcpOptions::dead_peer_max). A rank
// that fails tells all others who was at fault before it closes, so that they blame the first dead and not
// the second. A peer that is alive but stuck is given up after TcpOptions::silence_max; then the named rank
// is the one that was waited for.
//
// Threads: confined to one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/transport.hpp"
#include "collectives/transport/tcp/frame.hpp"

namespace trainyard::collectives {

// A descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

class TcpTransport final : public Transport {
 public:
  // Requires: sockets[k] is connected to rank k, does not block, and both sides have said hello;
  // sockets[rank] is empty.
  TcpTransport(TcpOptions options, std::vector<Socket> sockets);
  ~TcpTransport() override;

  int rank() const override { return options_.rank; }
  int size() const override { return int(links_.size()); }
  void send(int peer, Tag tag, std::span<const std::byte> bytes) override;
  void receive(int peer, Tag tag, std::span<std::byte> bytes) override;
  Result<bool> advance() override;
  Result<void> wait() override;
  void abandon(std::string_view why) override;

 private:
  struct Outgoing {
    HeaderBytes header;
    std::span<const std::byte> payload;
    size_t sent = 0;  // of header and payload together
  };
  struct Expected {
    Tag tag;
    std::span<std::byte> bytes;
    size_t received = 0;
  };
  struct Link {
    Socket socket;
    std::deque<Outgoing> outgoing;
    std::deque<Expected> expected;
    HeaderBytes header{};
    size_t header_received = 0;
    std::optional<FrameHeader> frame;  // whose payload comes now
    std::string control;               // payload of a frame that is not data, so far
    bool left = false;                 // said goodbye
    bool closed = false;
  };
  struct Fault {
    int rank;
    Error error;
    bool told;  // by a peer that knew the first cause
  };

  std::string name(int rank) const;
  // Each moves what it can; the answer is what is wrong with that peer.
  std::optional<Fault> pull(int peer);
  std::optional<Fault> push(int peer);
  std::optional<Fault> control_frame(int peer);
  // Whether the data frame that has come is the one that is expected.
  std::optional<Fault> compare(int peer) const;
  Fault gone(int peer, std::string why) const;
  bool holds_unwanted_data(const Link& link) const { return link.frame && link.expected.empty(); }
  // Reads what the others still send, until they have closed or farewell_max is over: closing a connection
  // with unread bytes resets it, and a reset may overtake our last words.
  void hear_out();
  static constexpr Duration farewell_max =
      500ms;  // for peers in the middle of a step; a computing one reads later
  // Remembers the error, tells the others, ends all sending. Returns the error.
  Error fail(Error error, int guilty);

  const TcpOptions options_;
  std::vector<Link> links_;  // by rank; our own is empty
  std::optional<Error> failure_;
  std::chrono::steady_clock::time_point progress_at_;
};

// Meets the other ranks; see join_over_tcp.
Result<std::unique_ptr<Transport>> connect_tcp(TcpOptions options);

}  // namespace trainyard::collectives
