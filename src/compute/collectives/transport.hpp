// Moves bytes between the ranks of one group: the sends and receives of a plan.
//
// All ranks call the same operations in the same order. Every message carries the number of its
// operation and a label, and a peer that is in another operation is an error, never a wrong sum.
//
// Threads: confined to one thread at a time. Lifetime: posted buffers must live until they are no
// longer used: bytes to send until all_sent(), buffers to receive into until their message was
// received or released.
// Errors: permanent: after the first error, every call returns it again. The error names the rank
// at fault.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::collectives {

// Identifies a message: the number of its operation in the life of the group, and a digest of the
// operation (kind, sizes) and of the elements that the message carries (plan::message_number).
struct Tag {
  uint64_t operation = 0;
  uint64_t label = 0;
  bool operator==(const Tag&) const = default;
};

class RegisteredMemory;

// The load of the link to a peer, since the link was made.
struct LinkLoad {
  int peer = 0;
  // The time while bytes were not yet acknowledged by the peer, but at most the time that the bytes
  // need at the rate of the link (transport/tcp/link_meter.hpp).
  std::chrono::nanoseconds busy{};
  uint64_t bytes = 0;  // bytes that the peer has acknowledged
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Posts a message to each of `peers`. The messages to one peer arrive in the order of their
  // sends, and match its receives in that order. The bytes may be read at any time until
  // all_sent().
  virtual void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) = 0;
  // Sends, and allows the receiver to overwrite the bytes with its result. The receiver then calls
  // notify(). The operation receives the result of `peer` in these bytes.
  virtual void send_writable(int peer, Tag tag, std::span<std::byte> bytes) {
    send(std::span(&peer, 1), tag, bytes);
  }
  // Replaces send() if the bytes were already written to writable(peer), where `peer` receives
  // them.
  virtual void notify(int peer, Tag tag, std::span<const std::byte> bytes) {
    send(std::span(&peer, 1), tag, bytes);
  }
  // Receives the next message of `peer` into `into`.
  virtual void receive_into(int peer, Tag tag, std::span<std::byte> into) = 0;
  // Receives the next message of `peer`. Until release(peer), the message stays where it arrived,
  // or is copied to `destination`. Requires: the previous message received from this peer was
  // released.
  virtual void receive(int peer, Tag tag, std::span<std::byte> destination) = 0;
  // Returns the message of receive(peer); null while it has not arrived.
  virtual const std::byte* arrived(int peer) = 0;
  // Returns the memory of the arrived message if `peer` sent it with send_writable(): a result may
  // be written there until release(peer). Returns null if the message was copied.
  virtual std::byte* writable(int) { return nullptr; }
  virtual void release(int peer) = 0;

  // Returns true if the next message of `peer` has begun to arrive. Makes progress without
  // blocking.
  // Requires: no receive from this peer is open.
  virtual Result<bool> has_message(int peer) = 0;

  virtual bool all_received() const = 0;
  virtual bool all_sent() const = 0;

  // Makes progress without blocking.
  virtual Result<void> advance() = 0;
  // Waits until advance() can make progress, a peer has failed, or a timeout has expired.
  virtual Result<void> wait() = 0;

  // Returns a number for each rank; it is equal for two ranks exactly when they share memory.
  virtual std::vector<int> hosts() const = 0;
  // Returns how many ranks of this host share a core, rounded up; equal for all ranks of a host.
  virtual int ranks_per_core() const { return 1; }
  // Returns the loads of at most a few links that have sent many bytes. Measures them again if the
  // last measurement is old.
  virtual std::span<const LinkLoad> link_loads(std::chrono::steady_clock::time_point) { return {}; }
  // Returns the memory that local ranks read without a copy; null where memory is not shared.
  virtual RegisteredMemory* registered() { return nullptr; }

  // Make a transport between some of the ranks. First every rank calls offer(), and all ranks
  // exchange the results; then the members call connect_members(). Requires: this rank is a member;
  // members, offers and key are equal on all members.
  virtual Result<std::string> offer() = 0;
  virtual Result<std::unique_ptr<Transport>> connect_members(const std::vector<int>& members,
                                                             const std::vector<std::string>& offers,
                                                             uint64_t key) = 0;

  // Ends the group because of this rank: operations on the other ranks fail, naming this rank and
  // `why`.
  virtual void abandon(std::string_view why) = 0;
};

}  // namespace trainyard::collectives
