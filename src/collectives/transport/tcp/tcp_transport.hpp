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
  // Requires: sockets[k] is connected to rank k, does not block, and both sides have proved their membership;
  // sockets[rank] is empty.
  TcpTransport(TcpOptions options, std::vector<Socket> sockets);
  ~TcpTransport() override;

  int rank() const override { return options_.rank; }
  int size() const override { return int(links_.size()); }
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override;
  void take(int peer, Tag tag, std::span<std::byte> into) override;
  void receive(int peer, Tag tag, std::span<std::byte> room) override;
  const std::byte* arrived(int peer) override { return links_[size_t(peer)].arrived; }
  void release(int peer) override;
  bool all_taken() const override { return takes_open_ == 0; }
  bool all_sent() const override { return sends_open_ == 0; }
  Result<void> advance() override;
  Result<void> wait() override;
  void abandon(std::string_view why) override;
  std::vector<int> hosts() const override;
  Result<std::string> offer() override;
  Result<std::unique_ptr<Transport>> meet(const std::vector<int>& members,
                                          const std::vector<std::string>& offers, uint64_t key) override;

  // For a transport that has other ways beside this one.
  // Looks at every connection, at most `at_most`, whether or not we wait for something on it.
  Result<void> look(Duration at_most);
  // Ends the group because of `guilty`.
  Error fail(Error error, int guilty);
  std::string name(int rank) const;
  const Socket& socket_to(int rank) const { return links_[size_t(rank)].socket; }
  // What wait() says when nothing came for too long; `waited_for` are the ranks that are to blame.
  Result<void> check_patience(std::span<const int> waited_for);
  Result<void> check_cancelled();
  const std::optional<Error>& failure() const { return failure_; }
  bool is_busy() const { return !busy_.empty(); }
  bool has_left(int peer) const { return links_[size_t(peer)].left; }
  bool has_readable() const;
  Error other_operation(int peer, uint64_t theirs, uint64_t their_bytes, uint64_t ours,
                        uint64_t our_bytes) const;
  Result<std::unique_ptr<TcpTransport>> meet_over_tcp(const std::vector<int>& members,
                                                      const std::vector<std::string>& offers, uint64_t key);
  void progressed() { progress_at_ = std::chrono::steady_clock::now(); }

 private:
  struct Outgoing {
    HeaderBytes header;
    std::span<const std::byte> payload;
    size_t sent = 0;  // of header and payload together
  };
  struct Expected {
    Tag tag;
    std::span<std::byte> bytes;
    bool kept = false;
    size_t received = 0;
  };
  struct Link {
    Socket socket;
    std::deque<Outgoing> outgoing;
    std::deque<Expected> expected;
    const std::byte* arrived = nullptr;
    HeaderBytes header{};
    size_t header_received = 0;
    std::optional<FrameHeader> frame;  // whose payload comes now
    std::string control;               // payload of a frame that is not data, so far
    bool readable = false;             // something came that nobody waits for
    bool left = false;                 // said goodbye
    bool closed = false;
  };
  struct Fault {
    int rank;
    Error error;
    bool told;  // by a peer that knew the first cause
  };

  void expect(int peer, Expected expected);
  // Each moves what it can; the answer is what is wrong with that peer.
  std::optional<Fault> pull(int peer);
  std::optional<Fault> push(int peer);
  std::optional<Fault> control_frame(int peer);
  // Whether the data frame that has come is the one that is expected.
  std::optional<Fault> compare(int peer) const;
  void finish_expected(Link& link);
  Fault gone(int peer, std::string why) const;
  Error blame(std::vector<Fault> faults);
  bool holds_unwanted_data(const Link& link) const {
    return link.frame && link.frame->kind == FrameKind::data && link.expected.empty();
  }
  // Reads what the others still send, until they have closed or farewell_max is over: closing a connection
  // with unread bytes resets it, and a reset may overtake our last words.
  void hear_out();
  static constexpr Duration farewell_max =
      500ms;  // for peers in the middle of a step; a computing one reads later

  const TcpOptions options_;
  std::vector<Link> links_;  // by rank; our own is empty
  std::vector<int> busy_;    // peers with something to send or to expect; some may have none any more
  size_t takes_open_ = 0;
  size_t sends_open_ = 0;
  int idle_looks_ = 0;  // how often wait() found nothing since something moved
  Socket offered_;      // listens for those who take our offer
  std::optional<Error> failure_;
  std::chrono::steady_clock::time_point progress_at_;
};

// Meets the other ranks; see join_over_tcp.
// `listener`, where there is one already, listens at our own endpoint.
Result<std::unique_ptr<TcpTransport>> connect_tcp(TcpOptions options, Socket listener = {});

// The same, but rank 0 alone is connected to everyone, and everyone to rank 0 alone: its endpoint suffices.
Result<std::unique_ptr<TcpTransport>> connect_star(TcpOptions options);

// Port 0 chooses a free one. Errors: unavailable while name or address are not there (yet).
Result<Socket> listen_at(const Endpoint& endpoint, int backlog);
Result<uint16_t> port_of(const Socket& listener);

}  // namespace trainyard::collectives
