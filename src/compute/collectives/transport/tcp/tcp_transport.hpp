// Connects ranks on different hosts over TCP. Neighbours (are_neighbours) are connected from the start, others when the first
// message between them is due. Large messages are split among TcpOptions::sockets_per_peer sockets. A small one is sent at
// once, with its header, in one system call, and waits in the kernel of the receiver; there is no handshake for it.
//
// How failure travels. A process that dies closes its connections: every neighbour that waits notices it at once. A machine
// that vanishes stops answering keepalive probes (TcpOptions::dead_peer_max). A rank that fails tells all connected ranks which
// rank was at fault before it closes, and they tell theirs, so that all blame the first failure and not the second. A peer that
// is alive but stuck is given up after TcpOptions::silence_max: a waiting rank tells all connected ranks that it waits, so the
// named rank is the one that does not (timeout.hpp). A rank that waits long for one that it is not connected to checks now
// and then whether that one still listens.
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
#include "collectives/transport/tcp/contacts.hpp"
#include "collectives/transport/tcp/frame.hpp"
#include "collectives/transport/tcp/wire.hpp"
#include "collectives/transport/timeout.hpp"

namespace trainyard::collectives {

class TcpTransport final : public Transport {
 public:
  // Requires: wires[k], where it is not empty, is connected to rank k, and both sides have proved their membership.
  // `contacts` refer to `options`.
  TcpTransport(std::unique_ptr<TcpOptions> options, std::unique_ptr<Contacts> contacts,
               std::vector<Wire> wires);
  ~TcpTransport() override;

  int rank() const override { return options_->rank; }
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

  // Returns when all ranks have called it; afterwards an unreachable rank counts as lost.
  Result<void> await_all(Duration at_most);
  bool is_linked(int peer) const { return bool(links_[size_t(peer)].streams[0].wire); }

  // For a transport that uses others next to this one.
  // Looks at every connection, at most `at_most`, whether or not we wait for something on it.
  Result<void> look(Duration at_most);
  // Ends the group because of `guilty`.
  Error fail(Error error, int guilty);
  std::string name(int rank) const;
  const Socket& socket_to(int rank) const { return links_[size_t(rank)].streams[0].wire.socket(); }
  // What wait() says when nothing came for too long from `waited_for`.
  Result<void> check_timeout(std::span<const int> waited_for);
  // The peers with a connection on which we wait.
  std::vector<int> waited_for() const;
  // `peer` waits, and would blame `guilty`. Requires: both are ranks.
  void heard(int peer, int guilty) { timeout_.heard(peer, guilty, std::chrono::steady_clock::now()); }
  // How often we have told the others that we wait, and whom we named last.
  uint32_t words_told() const { return words_told_; }
  int named() const { return named_; }
  Result<void> check_cancelled();
  const std::optional<Error>& failure() const { return failure_; }
  bool is_busy() const { return !busy_.empty(); }
  bool has_left(int peer) const { return links_[size_t(peer)].streams[0].left; }
  bool has_readable() const;
  Error other_operation(int peer, uint64_t theirs, uint64_t their_bytes, uint64_t ours,
                        uint64_t our_bytes) const;
  Result<std::unique_ptr<TcpTransport>> meet_over_tcp(const std::vector<int>& members,
                                                      const std::vector<std::string>& offers, uint64_t key);
  void progressed() { timeout_.moved(std::chrono::steady_clock::now()); }

 private:
  struct Outgoing {
    HeaderBytes header;
    std::span<const std::byte> payload;
    size_t sent = 0;       // of header and payload together
    bool is_word = false;  // reports that this rank waits; need not be delivered
  };
  struct Expected {
    Tag tag;
    std::span<std::byte> bytes;
    bool kept = false;
    size_t received = 0;
  };
  // One connection. Messages and parts of messages on it are in the order of their sends and receives.
  struct Stream {
    Wire wire;  // empty until it is needed
    std::deque<Outgoing> outgoing;
    std::deque<Expected> expected;
    HeaderBytes header{};
    size_t header_received = 0;
    std::optional<FrameHeader> frame;  // whose payload comes now
    std::string control;               // payload of a frame that is not data, so far
    bool readable = false;             // something arrived that no receive expects
    bool used = false;                 // a byte went, one way or the other
    bool left = false;                 // said goodbye
    bool closed = false;
    // A word is sent only where nothing else waits to be: it is the first, if there is one.
    bool owes() const { return outgoing.size() > (!outgoing.empty() && outgoing.front().is_word ? 1 : 0); }
    bool idle() const { return !readable && !owes() && expected.empty(); }
    bool holds_unwanted_data() const { return frame && frame->kind == FrameKind::data && expected.empty(); }
  };
  struct Link {
    std::vector<Stream> streams;
    const std::byte* arrived = nullptr;
    const std::byte* kept = nullptr;  // a message that is to be kept: where its parts go
    size_t kept_parts = 0;            // of it, which have not come
  };
  struct Fault {
    int rank;
    Error error;
    bool told;  // by a peer that knew the first cause
  };

  // Into how many parts a message is cut, one for each socket from the first on; both sides count alike.
  size_t parts_of(size_t bytes) const;
  // Sees to it that the connection is made.
  void need(int peer, size_t socket);
  size_t expect(int peer, Expected expected);
  // What the connections that are being made amount to.
  Result<void> meet_contacts();
  std::optional<Fault> move(int peer);
  // Each moves what it can; the answer is what is wrong with that peer.
  std::optional<Fault> pull(int peer, Stream& stream);
  std::optional<Fault> push(int peer, Stream& stream);
  std::optional<Fault> control_frame(int peer, Stream& stream);
  // Whether the data frame that has come is the one that is expected.
  std::optional<Fault> compare(int peer, const Stream& stream) const;
  void finish_expected(Link& link, Stream& stream);
  void ask_after(std::span<const int> waited_for);
  // All whom we are connected to, that we wait.
  void tell(int guilty);
  Fault gone(int peer, std::string why) const;
  Error blame(std::vector<Fault> faults);
  // Reads what the others still send, until they have closed or farewell_max is over: closing a connection
  // with unread bytes resets it, and a reset may overtake our last words.
  void hear_out();
  static constexpr Duration farewell_max =
      500ms;  // for peers in the middle of a step; a computing one reads later

  const std::unique_ptr<TcpOptions> options_;  // at one place, since contacts refer to it
  const std::unique_ptr<Contacts> contacts_;
  std::vector<Link> links_;  // by rank; our own is empty
  std::vector<int> busy_;    // peers with something to send or to expect; some may have none any more
  size_t takes_open_ = 0;
  size_t sends_open_ = 0;
  std::chrono::steady_clock::time_point yields_since_;
  int idle_looks_ = 0;  // how often wait() found nothing since something moved
  Socket offered_;      // listens for the members that use the offer of this rank
  std::optional<Error> failure_;
  Timeout timeout_;  // silence_max, but while all are awaited
  uint32_t words_told_ = 0;
  int named_ = 0;
  bool contacts_due_ = false;  // something came for them
  bool all_have_come_ = false;
};

// Ranks that are connected from the start: a power of two apart, around the circle.
bool are_neighbours(int a, int b, int ranks);

// Meets the other ranks; see join_over_tcp.
// `listener`, where there is one already, listens at our own endpoint.
Result<std::unique_ptr<TcpTransport>> connect_tcp(TcpOptions options, Socket listener = {});

// The same, but rank 0 alone is connected to everyone, and everyone to rank 0 alone: its endpoint suffices.
Result<std::unique_ptr<TcpTransport>> connect_star(TcpOptions options);

// Port 0 chooses a free one. Errors: unavailable while name or address are not there (yet).
Result<Socket> listen_at(const Endpoint& endpoint, int backlog);
Result<uint16_t> port_of(const Socket& listener);

}  // namespace trainyard::collectives
