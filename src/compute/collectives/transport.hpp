// Moves bytes between the ranks of one group: what a plan's sends and receives become.
//
// The ranks call the same operations in the same order. Every message carries its operation's number and
// label, and a peer that is elsewhere is an error, never wrong sums.
//
// Threads: confined to one thread at a time. Lifetime: what was posted must live until it was moved: bytes to
// send until all_sent(), room for bytes until they were taken or released.
// Errors: of the group, for ever: after the first one every call returns it again, and it names the rank at
// fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::collectives {

// Which operation a message belongs to: its number in the life of the group, and a digest of what it is
// (kind, sizes) and of which elements the message carries (plan::message_number).
struct Tag {
  uint64_t operation = 0;
  uint64_t label = 0;
  bool operator==(const Tag&) const = default;
};

class RegisteredMemory;

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Promises a message to each of `peers`. Per peer, messages arrive in the order of their sends and are met by
  // takes and receives in their order. Bytes may be read at any time until all_sent().
  virtual void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) = 0;
  // The same for bytes that the receiver may write a result over, which it then announces: the operation takes the
  // result of `peer` to where the bytes lie.
  virtual void lend(int peer, Tag tag, std::span<std::byte> bytes) { send(std::span(&peer, 1), tag, bytes); }
  // In place of a send: the result already lies where `peer` takes it, because it was written to lent(peer).
  virtual void announce(int peer, Tag tag, std::span<const std::byte> bytes) {
    send(std::span(&peer, 1), tag, bytes);
  }
  // The next message of `peer` goes to `into`.
  virtual void take(int peer, Tag tag, std::span<std::byte> into) = 0;
  // The next message of `peer` is kept where it comes, or in `room`, until release(peer).
  // Requires: the receive before it from this peer was released.
  virtual void receive(int peer, Tag tag, std::span<std::byte> room) = 0;
  // Where the message of receive(peer) lies; null while it has not come.
  virtual const std::byte* arrived(int peer) = 0;
  // Where a result may be written until release(peer): what arrived, if it was lent; null when it was copied on its
  // way.
  virtual std::byte* lent(int) { return nullptr; }
  virtual void release(int peer) = 0;

  virtual bool all_taken() const = 0;
  virtual bool all_sent() const = 0;

  // Moves what can be moved without waiting.
  virtual Result<void> advance() = 0;
  // Waits until advance() may get further, a peer failed, or a limit is over.
  virtual Result<void> wait() = 0;

  // By rank, a number that ranks share exactly when they share memory.
  virtual std::vector<int> hosts() const = 0;
  // Memory whose bytes local ranks read where they lie; null where there is none.
  virtual RegisteredMemory* registered() { return nullptr; }

  // A transport between some of the ranks. First every rank offers to be met, and everyone learns all offers;
  // then the members meet. Requires: we are a member; members, offers and key are the same for all members.
  virtual Result<std::string> offer() = 0;
  virtual Result<std::unique_ptr<Transport>> meet(const std::vector<int>& members,
                                                  const std::vector<std::string>& offers, uint64_t key) = 0;

  // Ends the group because of us: the others' operations fail with our name and `why`.
  virtual void abandon(std::string_view why) = 0;
};

}  // namespace trainyard::collectives
