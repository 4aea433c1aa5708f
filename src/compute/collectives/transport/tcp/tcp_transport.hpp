// Connects ranks on different hosts over TCP. Neighbours (are_neighbours) are connected from the
// start, others when the first message between them is due. Large messages are split among
// TcpOptions::sockets_per_peer sockets. A small message is sent at once, with its header, in one
// system call, without a handshake; it waits in the kernel of the receiver.
//
// How failures propagate: If a process dies, the kernel closes its connections, and every neighbour
// that waits for it notices at once. If a machine is lost, it stops answering keepalive probes
// (TcpOptions::kDeadPeerMax). A rank that fails sends all connected ranks the rank that was at
// fault before it closes its connections, and these ranks do the same, so all ranks blame the first
// failure. If a peer is alive but stuck, a rank fails after TcpOptions::peer_timeout. A rank that
// waits reports this to all connected ranks, so the rank that is blamed is one that does not wait
// (timeout.hpp). A rank that waits long for a peer to which it is not connected probes repeatedly
// whether that peer still listens.
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
#include "collectives/transport/tcp/link_meter.hpp"
#include "collectives/transport/tcp/wire.hpp"
#include "collectives/transport/timeout.hpp"

namespace trainyard::collectives {

class TcpTransport final : public Transport {
 public:
  // Requires: wires[k], if not empty, is connected to rank k, and both sides have proved their
  // membership. `contacts` refers to `options`.
  TcpTransport(std::unique_ptr<TcpOptions> options, std::unique_ptr<Contacts> contacts,
               std::vector<Wire> wires);
  ~TcpTransport() override;

  int rank() const override { return options_->rank; }
  int size() const override { return int(links_.size()); }
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override;
  void receive_into(int peer, Tag tag, std::span<std::byte> into) override;
  void receive(int peer, Tag tag, std::span<std::byte> destination) override;
  const std::byte* arrived(int peer) override { return links_[size_t(peer)].arrived; }
  void release(int peer) override;
  Result<bool> has_message(int peer) override;
  bool all_received() const override { return receives_open_ == 0; }
  std::span<const LinkLoad> link_loads(std::chrono::steady_clock::time_point now) override;
  bool all_sent() const override { return sends_open_ == 0; }
  Result<void> advance() override;
  Result<void> wait() override;
  void abandon(std::string_view why) override;
  std::vector<int> hosts() const override;
  Result<std::string> offer() override;
  Result<std::unique_ptr<Transport>> connect_members(const std::vector<int>& members,
                                                     const std::vector<std::string>& offers,
                                                     uint64_t key) override;

  // Returns when all ranks have called it. Afterwards an unreachable rank counts as lost.
  Result<void> await_all(Duration at_most);
  bool is_linked(int peer) const { return bool(links_[size_t(peer)].streams[0].wire); }

  // The functions below are for a transport that wraps this one.

  // Polls every connection for at most `at_most`, including those on which nothing is expected.
  Result<void> poll_sockets(Duration at_most);
  // Ends the group because of rank `guilty`.
  Error fail(Error error, int guilty);
  std::string name(int rank) const;
  const Socket& socket_to(int rank) const { return links_[size_t(rank)].streams[0].wire.socket(); }
  // Fails if nothing came from the ranks in `waited_for` within the timeout. Until then, reports
  // that this rank waits.
  Result<void> check_timeout(std::span<const int> waited_for);
  // Returns the peers from which this rank expects bytes, or to which it still has to send.
  std::vector<int> waited_for() const;
  // Records that `peer` waits and would blame `guilty`. Requires: both are ranks.
  void add_report(int peer, int guilty) {
    timeout_.add_report(peer, guilty, std::chrono::steady_clock::now());
  }
  // The number of reports that this rank waits, and the rank that the last one named.
  uint32_t reports_sent() const { return reports_sent_; }
  int named() const { return named_; }
  Result<void> check_cancelled();
  const std::optional<Error>& failure() const { return failure_; }
  bool is_busy() const { return !busy_.empty(); }
  bool has_left(int peer) const { return links_[size_t(peer)].streams[0].left; }
  bool has_readable() const;
  Error other_operation(int peer, uint64_t theirs, uint64_t their_bytes, uint64_t ours,
                        uint64_t our_bytes) const;
  Result<std::unique_ptr<TcpTransport>> connect_over_tcp(const std::vector<int>& members,
                                                         const std::vector<std::string>& offers,
                                                         uint64_t key);
  void progressed() { timeout_.moved(std::chrono::steady_clock::now()); }

 private:
  struct Outgoing {
    HeaderBytes header;
    std::span<const std::byte> payload;
    size_t sent = 0;         // of header and payload together
    bool is_report = false;  // reports that this rank waits; need not be delivered
  };
  struct Expected {
    Tag tag;
    std::span<std::byte> bytes;
    bool kept = false;
    size_t received = 0;
  };
  // One connection. Messages and parts of messages on it are in the order of their sends and
  // receives.
  struct Stream {
    Wire wire;  // empty until the connection is made
    std::deque<Outgoing> outgoing;
    std::deque<Expected> expected;
    HeaderBytes header{};
    size_t header_received = 0;
    std::optional<FrameHeader> frame;  // its payload is being received
    std::string control;               // payload received so far, of a frame that is not data
    bool readable = false;             // something arrived that no receive expects
    bool used = false;                 // a byte was sent or received
    bool left = false;                 // the peer sent a goodbye
    bool closed = false;
    // Returns true if frames other than a report are queued. A report is queued only in an empty
    // queue, so it can only be the first.
    bool has_unsent() const {
      return outgoing.size() > (!outgoing.empty() && outgoing.front().is_report ? 1 : 0);
    }
    bool idle() const { return !readable && !has_unsent() && expected.empty(); }
    bool holds_unwanted_data() const {
      return frame && frame->kind == FrameKind::data && expected.empty();
    }
  };
  struct Link {
    std::vector<Stream> streams;
    const std::byte* arrived = nullptr;
    const std::byte* kept = nullptr;  // the buffer for a message of receive()
    size_t kept_parts = 0;            // parts of it that have not arrived
  };
  struct Fault {
    int rank;
    Error error;
    bool reported;  // a peer reported it, with the first cause
  };

  // Returns the number of parts of a message, one for each socket from the first on. Both sides
  // compute the same.
  size_t parts_of(size_t bytes) const;
  // Requests the connection if it is not made yet.
  void need(int peer, size_t socket);
  size_t expect(int peer, Expected expected);
  // Adds connections that were established to their links, and fails if a peer is lost.
  Result<void> advance_contacts();
  std::optional<Fault> move(int peer);
  // Receive or send as much as possible without blocking. Return the fault of the peer, if any.
  std::optional<Fault> pull(int peer, Stream& stream);
  std::optional<Fault> push(int peer, Stream& stream);
  std::optional<Fault> control_frame(int peer, Stream& stream);
  // Compares the header of a received data frame with the message that is expected.
  std::optional<Fault> compare(int peer, const Stream& stream) const;
  void finish_expected(Link& link, Stream& stream);
  void probe(std::span<const int> waited_for);
  // Reports to all connected ranks that this rank waits.
  void report_waiting(int guilty);
  Fault gone(int peer, std::string why) const;
  Fault exited(int peer) const;
  Error blame(std::vector<Fault> faults);
  // Reads until the peers have closed their connections or kFarewellMax is over. Closing a
  // connection with unread bytes resets it, and the reset may overtake the failure message.
  void drain();
  // enough for peers within an operation; a peer that computes reads later
  static constexpr Duration kFarewellMax = 500ms;

  const std::unique_ptr<TcpOptions> options_;  // on the heap, since contacts_ refers to it
  const std::unique_ptr<Contacts> contacts_;
  std::vector<Link> links_;  // by rank; this rank's is empty
  std::vector<int> busy_;    // peers with something to send or to receive; may contain idle ones
  size_t receives_open_ = 0;
  size_t sends_open_ = 0;
  std::vector<LinkMeter> meters_;  // at most kCallLinks
  std::vector<LinkLoad> loads_;    // of meters_
  std::optional<std::chrono::steady_clock::time_point> loads_measured_;
  std::chrono::steady_clock::time_point yields_since_;
  int idle_polls_ = 0;  // calls of wait() since the last progress
  Socket offered_;      // listens for the members to which this rank made an offer
  std::optional<Error> failure_;
  Timeout timeout_;  // peer_timeout, except during await_all()
  uint32_t reports_sent_ = 0;
  int named_ = 0;
  bool contacts_due_ = false;  // contacts_ has events, or a new connection is needed
  bool all_have_joined_ = false;
};

// Returns true for ranks that are connected from the start: their distance around the circle is a
// power of two.
bool are_neighbours(int a, int b, int ranks);

// Connects to the other ranks; see join_over_tcp. `listener`, if not empty, already listens at the
// endpoint of this rank.
Result<std::unique_ptr<TcpTransport>> connect_tcp(TcpOptions options, Socket listener = {});

// Connects rank 0 to all others, and no other ranks. Only rank 0 needs an endpoint.
Result<std::unique_ptr<TcpTransport>> connect_star(TcpOptions options);

// Creates a listener. With port 0 the kernel chooses a free port. Errors: unavailable while the
// name or the address does not exist (yet).
Result<Socket> listen_at(const Endpoint& endpoint, int backlog);
Result<uint16_t> port_of(const Socket& listener);

}  // namespace trainyard::collectives
