// Connects ranks on one machine through shared memory, and all others over TCP.
//
// The bytes of a message are copied once into the outbox of the sender, and all receivers read them
// there. Bytes in registered memory are not copied at all; the sender's all_sent() then waits until
// every receiver has read them. After send_writable(), the receiver writes its result over them.
//
// A waiting rank first spins, since a message between two cores takes a fraction of a microsecond.
// Then it yields its core, which the peer may need when there are more ranks than cores. Then it
// sleeps on a futex. TCP connections exist between local neighbours as well: they carry failure
// messages, and close when a process dies.
//
// Threads: confined to one thread at a time; registered() may be used from any thread.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "collectives/transport/shm/registered_memory.hpp"
#include "collectives/transport/shm/segment.hpp"
#include "collectives/transport/shm/segment_address.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {

class ShmTransport final : public Transport {
 public:
  // Determines over `tcp` which ranks share memory; all ranks call it at the same time. A rank that
  // cannot share memory uses TCP for all its peers.
  static Result<std::unique_ptr<Transport>> make(std::unique_ptr<TcpTransport> tcp,
                                                 std::shared_ptr<RegisteredMemory> registered);
  ~ShmTransport() override;

  int rank() const override { return tcp_->rank(); }
  int size() const override { return tcp_->size(); }
  std::vector<int> hosts() const override { return hosts_; }
  int ranks_per_core() const override { return ranks_per_core_; }
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override;
  void send_writable(int peer, Tag tag, std::span<std::byte> bytes) override;
  void notify(int peer, Tag tag, std::span<const std::byte> bytes) override;
  void receive_into(int peer, Tag tag, std::span<std::byte> into) override;
  void receive(int peer, Tag tag, std::span<std::byte> destination) override;
  const std::byte* arrived(int peer) override;
  std::byte* writable(int peer) override { return peers_[size_t(peer)].writable; }
  void release(int peer) override;
  Result<bool> has_message(int peer) override;
  bool all_received() const override { return receives_open_ == 0 && tcp_->all_received(); }
  bool all_sent() const override;
  Result<void> advance() override;
  Result<void> wait() override;
  void abandon(std::string_view why) override { tcp_->abandon(why); }
  Result<std::string> offer() override { return tcp_->offer(); }
  Result<std::unique_ptr<Transport>> connect_members(const std::vector<int>& members,
                                                     const std::vector<std::string>& offers,
                                                     uint64_t key) override;
  std::span<const LinkLoad> link_loads(std::chrono::steady_clock::time_point now) override {
    return tcp_->link_loads(now);
  }
  RegisteredMemory* registered() override { return registered_.get(); }

 private:
  struct Expected {
    Tag tag;
    std::span<std::byte> bytes;
    bool kept = false;
    size_t received = 0;
  };
  struct Peer {
    bool local = false;
    int64_t process = 0;
    Mapping mapping;
    Segment segment;
    ProcessWatch watch;
    uint64_t report = 0;    // Header::report of the peer, as last read
    uint64_t put = 0;       // entries written to the lane to this peer
    uint64_t consumed = 0;  // entries of its lane that this rank has consumed
    std::deque<Expected> expected;
    const std::byte* arrived = nullptr;
    std::byte* writable = nullptr;  // equals `arrived` if a result may be written there
    bool arrived_in_lane = false;   // release() frees an entry
    // True if memory that the peer registered can no longer be mapped: the peer has ended, or has
    // failed and freed the memory. TCP or `watch` reports which.
    bool unreachable = false;
    struct Mapped {
      uint32_t generation = 0;
      Mapping mapping;
    };
    std::vector<Mapped> regions;
  };
  enum class SendMode : uint8_t { read, writable, in_place };
  struct Outgoing {
    std::span<const int> peers;
    std::vector<int> kept_peers;  // the storage of `peers` if the message must wait
    Tag tag;
    std::span<const std::byte> bytes;
    size_t put = 0;  // bytes written so far
    SendMode mode = SendMode::read;
  };
  // A peer that reads a block of the outbox, or registered memory, until it has consumed the entry
  // `sequence`.
  struct Reader {
    int peer;
    uint64_t sequence;
  };
  struct Block {
    size_t end = 0;  // end of the block in the outbox
    size_t readers = 0;
  };

  ShmTransport(std::unique_ptr<TcpTransport> tcp, std::shared_ptr<RegisteredMemory> registered);
  std::string make_segment();
  bool map_segment(Peer& peer, const SegmentAddress& address);
  Result<void> attach();
  void put_or_keep(Outgoing message);
  // Writes as many parts as fit. Returns true when the whole message was written.
  bool put(Outgoing& message);
  // Reserves contiguous bytes in the outbox; returns null if they do not fit now.
  std::byte* outbox_space(size_t bytes);
  bool was_read(const Reader& reader) const;
  bool oldest_block_was_read() const;
  void reclaim();
  void drop_references() const;
  void put_entry(int peer, const Outgoing& message, size_t part_bytes, uint32_t region,
                 uint32_t generation, uint64_t offset);
  bool lane_has_space(int peer) const;
  // Receives the bytes that have arrived from one peer.
  Result<void> pull(int peer);
  Result<const std::byte*> bytes_of_entry(Peer& peer, const Entry& entry);
  void consume(Peer& peer);
  // Returns true if the next entry of the peer's lane is written.
  bool has_entry(const Peer& peer) const;
  bool can_progress() const;
  // Fails when the process of a local peer has ended and its rank has not left.
  Result<void> check_processes();
  Result<void> check_peers();
  // Publish this rank's reports that it waits (timeout.hpp) to the local ranks, and read theirs.
  // Connected ranks exchange reports over TCP.
  void publish_report();
  void read_reports();
  bool has_left(int peer) const;

  std::unique_ptr<TcpTransport> tcp_;
  std::shared_ptr<RegisteredMemory> registered_;
  SharedMemory memory_;
  Segment own_;
  std::vector<Peer> peers_;
  std::vector<int> hosts_;
  int ranks_per_core_ = 1;
  std::vector<int> waiting_;  // local peers from which a message is expected
  std::vector<int> remote_;   // scratch of send()
  std::deque<Outgoing> outgoing_;
  std::deque<Block> blocks_;
  std::deque<Reader> readers_;             // readers of the blocks, in the same order
  mutable std::deque<Reader> references_;  // readers of the caller's registered memory
  size_t outbox_begin_ = 0;                // the oldest byte in use
  size_t outbox_end_ = 0;
  size_t receives_open_ = 0;
  int spins_ = 0;  // yields in wait() since the last progress
  std::chrono::steady_clock::time_point yields_since_;
  int spins_max_ = 0;
  bool has_local_ = false;
};

}  // namespace trainyard::collectives
