// A Mailbox sends and receives messages of any length between any two ranks. It receives from
// several peers at once, since a server does not know which worker sends next. Messages of one peer
// arrive in the order in which they were sent.
//
// A message is sent as two messages of the transport: its length (8 bytes), and its bytes. A length
// above kMessageBytesMax is an error.
//
// Threads: confined to one. Errors: those of the transport, which are permanent and name the rank
// at fault; corrupt, for an invalid length.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/transport.hpp"
#include "parameter_server/messages.hpp"

namespace trainyard::parameter_server {

struct ReceivedMessage {
  int from = 0;
  std::string text;
};

class Mailbox {
 public:
  explicit Mailbox(std::unique_ptr<collectives::Transport> transport);
  ~Mailbox();

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  // Queues a message without blocking. Requires: `peer` is another rank; `text` is not empty and
  // has at most kMessageBytesMax bytes.
  void send(int peer, std::string text);
  // Waits for the next message from any of `peers`. Requires: no rank among them has left.
  Result<ReceivedMessage> receive(std::span<const int> peers);
  // Returns when the transport has sent every message.
  Result<void> flush();

 private:
  struct Outgoing {
    int peer = 0;
    std::array<std::byte, 8> length{};
    std::string text;
    collectives::Tag length_tag;
    collectives::Tag text_tag;
  };
  // The receive from a peer: first a length, then this number of bytes.
  struct Incoming {
    bool is_posted = false;  // a receive is posted
    bool has_length = false;
    std::array<std::byte, 8> length{};
    std::string text;
    uint64_t count = 0;  // messages received so far
  };

  void post();
  void post_receive(int peer);
  // Returns true if a whole message of the peer is in incoming_[peer].text.
  Result<bool> poll(int peer);

  std::unique_ptr<collectives::Transport> transport_;
  // bounded by the requests that peers send before they read
  std::deque<std::unique_ptr<Outgoing>> waiting_;
  std::vector<std::unique_ptr<Outgoing>> posted_;  // the transport may read them until all_sent()
  std::vector<uint64_t> sent_;                     // number of messages, by peer
  std::vector<Incoming> incoming_;                 // by peer
  // the peer that is polled first, so that none starves
  size_t next_ = 0;
};

}  // namespace trainyard::parameter_server
