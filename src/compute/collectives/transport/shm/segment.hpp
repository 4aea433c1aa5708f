// Creates, finds and lays out the memory that ranks on one machine share.
//
// The segment of a rank is a memfd: it has no name that could be left behind, and is freed with its
// last user. Other ranks open it as /proc/PID/fd/N, which works for processes of the same user in
// the same PID namespace. A peer is local when attaching to its segment succeeds and the segment
// contains the random number that the peer sent over the network. Host names, addresses and the
// environment are not considered.
//
//   segment of rank s = Header | for each rank t: Lane s -> t | outbox
//
// All data about messages s -> t is in the segment of s; t writes only `consumed`, which has its
// own cache line. The bytes of a message are in the outbox of s, or in a region that s registered
// (Group::allocate).
//
// Threads: plain functions; the comments at the atomics name the writers. Errors: unavailable,
// where memory cannot be shared.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"

namespace trainyard::collectives {

// messages in flight from one rank to another
inline constexpr size_t kLaneEntries = 16;
// bytes in flight from one rank; further messages wait
inline constexpr size_t kOutboxBytes = size_t{4} << 20;
inline constexpr size_t kFragmentBytesMax = kOutboxBytes / 4;  // longer messages are sent in parts
inline constexpr size_t kRegionsMax = 64;                      // registered regions of one rank
inline constexpr uint32_t kRegionInPlace = ~uint32_t{0};

// An Entry is a message, or a part of a message.
struct alignas(64) Entry {
  std::atomic<uint64_t> sequence;  // 1, 2, ..: written last, by the sender
  uint64_t operation;
  uint64_t label;
  uint64_t message_bytes;  // bytes of all parts
  uint64_t part_bytes;
  // 0: the outbox; kRegionInPlace: none, since the sender has written the bytes to their
  // destination
  uint32_t region;
  uint32_t region_generation;
  uint64_t offset;
  uint32_t writable;  // 1: the receiver may overwrite the bytes with its result
};

struct alignas(64) Lane {
  Entry entries[kLaneEntries];
  // number of entries that the receiver has read; written by the receiver
  alignas(64) std::atomic<uint64_t> consumed;
};

// A registered region, with the data that a peer needs to map it.
struct Region {
  std::atomic<uint32_t> generation;  // changes when the index is used again
  int32_t descriptor;
  uint64_t bytes;
};

// The cores on which a process may run, one bit for each.
using CoreSet = std::array<uint64_t, 16>;
CoreSet usable_cores();
CoreSet join(const CoreSet& a, const CoreSet& b);
int count(const CoreSet& cores);

struct alignas(64) Header {
  uint64_t magic;
  std::array<uint64_t, 2> nonce;
  uint64_t ranks;
  CoreSet cores;
  std::atomic<uint32_t> left;  // 1: its owner is done and needs no other rank
  // Changes whenever the owner reports that it waits (timeout.hpp). The lower half is the rank that
  // the owner would blame.
  std::atomic<uint64_t> report;
  // a futex: 1 while its owner sleeps; its senders set it to 0
  alignas(64) std::atomic<uint32_t> asleep;
  alignas(64) Region regions[kRegionsMax];  // index 0 is not used
};

// Owns a memory mapping, which the destructor unmaps.
class Mapping {
 public:
  Mapping() = default;
  Mapping(std::byte* begin, size_t bytes) : begin_(begin), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::byte* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return begin_ != nullptr; }

 private:
  std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
};

// Owns a memfd and its mapping.
class SharedMemory {
 public:
  static Result<SharedMemory> make(const char* name, size_t bytes);
  // Replaces existing pages by shared ones with the same content. The destructor makes the pages
  // private again and keeps their content. A child of fork() never writes to the pages of the
  // parent; but until it has written to a page itself, it sees what the parent and its peers write
  // to that page. Requires: whole pages, to which no thread writes meanwhile.
  static Result<SharedMemory> make_at(const char* name, std::span<std::byte> pages);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();
  int descriptor() const { return descriptor_; }
  std::byte* begin() const { return mapping_ ? mapping_.begin() : pages_.data(); }
  size_t bytes() const { return mapping_ ? mapping_.bytes() : pages_.size(); }

 private:
  void end();

  int descriptor_ = -1;
  Mapping mapping_;             // empty after make_at()
  std::span<std::byte> pages_;  // empty after make()
};

// Maps the memory of a descriptor of a process, which may be this one. Errors: unavailable, if it
// is not a file of that size; else the error of open(), such as not_found after the process has
// ended.
Result<Mapping> map_of(int64_t process, int descriptor, size_t bytes);

// A Segment refers to the segment of a rank, mapped by its owner or by a peer.
struct Segment {
  static constexpr uint64_t kMagic = 0x3347455352545954;  // "TYTRSEG3"
  static size_t bytes_for(int ranks) {
    return sizeof(Header) + size_t(ranks) * sizeof(Lane) + kOutboxBytes;
  }

  std::byte* begin = nullptr;
  int ranks = 0;

  Header& header() const { return *reinterpret_cast<Header*>(begin); }
  Lane& lane(int to) const { return reinterpret_cast<Lane*>(begin + sizeof(Header))[to]; }
  std::byte* outbox() const { return begin + sizeof(Header) + size_t(ranks) * sizeof(Lane); }
};

// A ProcessWatch detects by a pidfd that a process has ended. If the kernel does not provide a
// pidfd, ended() is always false.
class ProcessWatch {
 public:
  ProcessWatch() = default;
  explicit ProcessWatch(int64_t process);
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&& other) noexcept;
  ~ProcessWatch();
  bool ended() const;

 private:
  int descriptor_ = -1;
};

// Sleeps while `word` is 1, for at most `milliseconds`. May return earlier.
void sleep_on(std::atomic<uint32_t>& word, uint32_t milliseconds);
// Wakes the owner of the segment if it sleeps. The owner then sees everything that was written
// before the call.
void wake(Header& header);

}  // namespace trainyard::collectives
