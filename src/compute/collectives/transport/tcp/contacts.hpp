// Contacts makes connections until they can become part of a link: connecting, listening, and the proof of membership.
//
// Of two ranks the later one connects and the earlier one listens. On each connection, inside TLS when the group is encrypted,
// both sides send a hello and then a proof that they know the secret of the group. The side that connected sends first, so an
// unauthenticated peer learns nothing from a port but that it belongs to a rank, and costs at most its descriptor for
// stranger_hello_max.
//
// A rank may have several addresses (hosts on different networks): they are tried in sequence.
//
// Threads: confined to one. Nothing here blocks.
// Errors:  as those of a peer, with its rank: unavailable (it is lost), conflict (it belongs to another job or group).
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
    int socket;  // which of the sockets to that peer
    Wire wire;
  };
  struct Trouble {
    int peer;
    Error error;
  };

  // Lifetime: options outlive this. `key` is null where the group is not encrypted; `listener` may be empty where
  // no rank connects to this one.
  Contacts(const TcpOptions& options, std::shared_ptr<const TlsKey> key, Socket listener);

  // This connection is needed now. The later rank begins it; the earlier one can only wait for it.
  void want(int peer, int socket);
  // From now on a peer that refuses a connection is lost: all ranks have joined.
  void all_have_come() { all_have_come_ = true; }
  // Checks whether a later rank, for which this one waits, still listens; advance() reports the result.
  void probe(int peer);

  // True while a connection is under way, or waits for its next attempt.
  bool busy() const { return !contacts_.empty() || !attempts_.empty(); }
  void add_events(std::vector<pollfd>& events) const;
  // How long poll may sleep before an attempt is due.
  Duration sleep_max() const;
  // Goes on with everything. What became a connection is appended to `proved`.
  std::optional<Trouble> advance(std::vector<Proved>& proved);

  // Why there is no connection to a peer yet, in words.
  std::string last_failure(int peer) const;

 private:
  using SteadyClock = std::chrono::steady_clock;
  using Deadline = SteadyClock::time_point;

  // One control frame as it trickles in.
  class FrameReader {
   public:
    // The payload of the next frame; empty until it is whole. Never reads a byte beyond it.
    Result<std::optional<std::string>> read(Wire& wire, FrameKind kind);

   private:
    std::string bytes_;
    size_t length_ = 0;
  };

  // A connection that has not proved to be a link yet.
  struct Contact {
    Wire wire;
    int peer = -1;  // known where we connected to it, else from its hello on
    int socket = 0;
    bool ours = false;       // we connected
    bool probe = false;      // only checks whether the peer listens
    bool connected = false;  // the connection stands
    bool greeted = false;    // and is encrypted where it has to be
    std::optional<Hello> hello;
    Hello our_hello;
    FrameReader reader;
    Deadline until;
  };
  // Our tries to connect to an earlier rank.
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
  std::optional<Trouble> begin_attempts();
  // Empty where it failed at once.
  Socket begin_connecting(Attempt& attempt);
  // What an attempt's failures amount to.
  std::optional<Trouble> trouble_of(const Attempt& attempt) const;
  Result<bool> hear(Contact& contact);
  Result<bool> finish_connecting(Contact& contact);
  Result<void> answer_hello(Contact& contact);
  std::optional<Trouble> failed(const Contact& contact, Error error);
  Hello fresh_hello(const Contact& contact) const;
  size_t strangers() const;

  const TcpOptions& options_;
  const std::shared_ptr<const TlsKey>
      key_;  // shared with the transport's other contacts; the last one frees it
  Socket listener_;
  std::vector<Contact> contacts_;
  std::vector<Attempt> attempts_;  // of ranks that are not connected yet
  bool all_have_come_ = false;
};

}  // namespace trainyard::collectives
