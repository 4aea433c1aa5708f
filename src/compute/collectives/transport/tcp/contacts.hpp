// Contacts establishes connections: it connects, listens, and verifies that a peer is a member,
// before a connection becomes part of a link.
//
// The higher of two ranks connects, and the lower one listens. On each connection, inside TLS if
// the group is encrypted, both sides send a hello and then a proof that they know the secret of the
// group. The side that connected sends first. So an unauthenticated peer learns only that a rank
// uses the port, and occupies at most a descriptor for kUnauthenticatedHelloMax.
//
// A rank may have several addresses (hosts on different networks), which are tried in sequence.
//
// Threads: confined to one. No function blocks.
// Errors:  of a peer, with its rank: unavailable (the peer is lost), conflict (the peer is in
// another job or group).
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/transport/tcp/frame.hpp"
#include "collectives/transport/tcp/wire.hpp"

namespace trainyard::collectives {

class Contacts {
 public:
  struct Proved {
    int peer;
    int socket;  // index of the socket to that peer
    Wire wire;
  };
  struct PeerError {
    int peer;
    Error error;
  };

  // Lifetime: `options` outlives this. `key` is null if the group is not encrypted; `listener` may
  // be empty if no rank connects to this one.
  Contacts(const TcpOptions& options, std::shared_ptr<const TlsKey> key, Socket listener);

  // Requests a connection. A rank connects only to lower ranks, and waits until higher ranks
  // connect.
  void want(int peer, int socket);
  // Reports that all ranks have joined. From now on, a peer that refuses a connection counts as
  // lost.
  void all_have_joined() { all_have_joined_ = true; }
  // Checks whether a higher rank, for which this one waits, still listens. advance() reports the
  // result.
  void probe(int peer);

  // Returns true while a connection is being established or waits for its next attempt.
  bool busy() const { return !contacts_.empty() || !attempts_.empty(); }
  void add_events(std::vector<pollfd>& events) const;
  // Returns how long poll may sleep before an attempt is due.
  Duration sleep_max() const;
  // Makes progress on all connections without blocking. Appends established connections to
  // `proved`.
  std::optional<PeerError> advance(std::vector<Proved>& proved);

  // Describes why there is no connection to a peer yet.
  std::string last_failure(int peer) const;

 private:
  using SteadyClock = std::chrono::steady_clock;
  using Deadline = SteadyClock::time_point;

  // Reads one control frame, which may arrive in parts.
  class FrameReader {
   public:
    // Returns the payload of the next frame; empty until it is complete. Never reads a byte beyond
    // the frame.
    Result<std::optional<std::string>> read(Wire& wire, FrameKind kind);

   private:
    std::string bytes_;
    size_t length_ = 0;
  };

  // A connection that is not yet part of a link.
  struct Contact {
    Wire wire;
    int peer = -1;  // known from the start if this rank connected, else after the hello
    int socket = 0;
    bool ours = false;       // this rank connected
    bool probe = false;      // only checks whether the peer listens
    bool connected = false;  // TCP has connected
    bool secured = false;    // the TLS handshake is complete, or the group is not encrypted
    std::optional<Hello> hello;
    Hello our_hello;
    FrameReader reader;
    Deadline until;
  };
  // The attempts to connect to a lower rank.
  struct Attempt {
    int peer;
    int socket;
    bool probe = false;
    bool under_way = false;
    Deadline next{};
    Duration pause;
    size_t tries = 0;
    std::vector<std::string> last_failures;  // by address
  };

  void accept_all();
  std::optional<PeerError> begin_attempts();
  // Starts to connect to the next address. Returns an empty socket if that failed at once.
  Socket begin_connecting(Attempt& attempt);
  // Returns an error if the failures show that the peer is lost.
  std::optional<PeerError> peer_error_of(const Attempt& attempt) const;
  Result<bool> read_frame(Contact& contact);
  Result<bool> finish_connecting(Contact& contact);
  Result<void> answer_hello(Contact& contact);
  std::optional<PeerError> failed(const Contact& contact, Error error);
  Hello fresh_hello(const Contact& contact) const;
  size_t unauthenticated() const;

  const TcpOptions& options_;
  // shared with the transport's other contacts; the last one frees it
  const std::shared_ptr<const TlsKey> key_;
  Socket listener_;
  std::vector<Contact> contacts_;
  std::vector<Attempt> attempts_;  // to connect to ranks that are not connected yet
  bool all_have_joined_ = false;
};

}  // namespace trainyard::collectives
