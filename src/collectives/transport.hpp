// Moves bytes between the ranks of one group: what a plan's sends and receives become.
//
// The ranks call the same operations in the same order. Every message carries its operation's number and
// label, and a peer that is elsewhere is an error, never wrong sums.
//
// Threads: confined to one thread at a time. Lifetime: posted bytes must live until advance() says that all
// is moved. Errors: of the group, for ever: after the first one every call returns it again, and it names the
// rank at fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::collectives {

// Which operation a message belongs to: its number in the life of the group, and a digest of what it is
// (kind, sizes).
struct Tag {
  uint64_t operation = 0;
  uint64_t label = 0;
  bool operator==(const Tag&) const = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Promises a message. Per peer, messages arrive in the order of their sends and are met by receives in
  // their order.
  virtual void send(int peer, Tag tag, std::span<const std::byte> bytes) = 0;
  virtual void receive(int peer, Tag tag, std::span<std::byte> bytes) = 0;

  // Moves what can be moved without waiting. True when everything that was posted is moved.
  virtual Result<bool> advance() = 0;
  // Waits until advance() may get further, a peer failed, or a limit is over.
  virtual Result<void> wait() = 0;

  // Ends the group because of us: the others' operations fail with our name and `why`.
  virtual void abandon(std::string_view why) = 0;
};

}  // namespace trainyard::collectives
