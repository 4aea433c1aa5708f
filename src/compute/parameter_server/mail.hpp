// Messages of any length between any two ranks, in any order of peers: what a server needs, who does not know who asks
// next. Per peer they arrive in the order in which they were sent.
//
// On the transport a message is two: its length, 8 bytes, and its bytes. Lengths beyond message_bytes_max are not believed.
//
// Threads: confined to one. Errors: of the transport, for ever, naming the rank at fault; corrupt, for a wrong length.
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

struct Letter {
  int from = 0;
  std::string text;
};

class Mail {
 public:
  explicit Mail(std::unique_ptr<collectives::Transport> transport);
  ~Mail();

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  // Never waits. Requires: another rank; text is not empty and at most message_bytes_max.
  void send(int peer, std::string text);
  // The next message of any of `peers`. A rank that left properly may not be among them.
  Result<Letter> receive(std::span<const int> peers);
  // Returns when all that was sent is on its way.
  Result<void> flush();

 private:
  struct Outgoing {
    int peer = 0;
    std::array<std::byte, 8> length{};
    std::string text;
    collectives::Tag length_tag;
    collectives::Tag text_tag;
  };
  // A peer that we listen to: first for a length, then for as many bytes.
  struct Incoming {
    bool expected = false;  // something was posted
    bool has_length = false;
    std::array<std::byte, 8> length{};
    std::string text;
    uint64_t count = 0;  // of its messages so far
  };

  void post();
  void expect(int peer);
  // True when a whole message of the peer is in incoming_[peer].text.
  Result<bool> look(int peer);

  std::unique_ptr<collectives::Transport> transport_;
  std::deque<std::unique_ptr<Outgoing>> waiting_;  // bounded by what peers ask before they read
  std::vector<std::unique_ptr<Outgoing>> posted_;  // the transport may read them until all_sent()
  std::vector<uint64_t> sent_;                     // messages, by peer
  std::vector<Incoming> incoming_;                 // by peer
  size_t next_ = 0;                                // who is looked at first: nobody starves
};

}  // namespace trainyard::parameter_server
