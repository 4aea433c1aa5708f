#include "collectives/transport/shm/shm_transport.hpp"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "collectives/reduce/processors.hpp"

namespace trainyard::collectives {
namespace {

// Copying a message of this size costs less than waiting until the receivers have read it in
// registered memory.
constexpr size_t kEagerBytesMax = 4096;
// Some ten microseconds, which a peer needs for a small message. Even when there are enough cores
// for all ranks, the peer may be waiting for this core: a yield then lets it run at once, and costs
// almost nothing when no process waits. Ranks that share a core check only once before they yield:
// while one spins, the others cannot send the message for which it waits.
constexpr int kSpinsWithOwnCoreMax = 200;
constexpr int kSpinsWithSharedCoreMax = 1;
constexpr int kSpinsBetweenYieldsMax = 10;
constexpr int kYieldsMax = 500;
// When many processes share this core, a yield takes as long as all their time slices; sleeping
// until a wakeup is then better.
constexpr Duration kYieldingMax = 5ms;
// peers are checked after this time, so a dead peer is noticed within it
constexpr uint32_t kSleepMaxMs = 10;
constexpr size_t kAddressBytes = 128;
constexpr Tag kBootstrapTag{~uint64_t{0}, 1};

size_t to_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Gathers the texts of all ranks, by rank; all texts have the same length. Each round doubles the
// distance to the peers and the number of texts that are known, so only neighbours communicate.
Result<std::vector<std::string>> exchange_texts(TcpTransport& tcp, const std::string& mine) {
  const size_t bytes = mine.size();
  const auto ranks = size_t(tcp.size());
  std::string texts = mine;  // texts of this rank, the rank after it, ..
  texts.resize(bytes * ranks);
  for (size_t known = 1; known < ranks; known *= 2) {
    const size_t more = std::min(known, ranks - known);
    const int to = int((size_t(tcp.rank()) + ranks - known) % ranks);
    const int from = int((size_t(tcp.rank()) + known) % ranks);
    const auto all = std::as_writable_bytes(std::span(texts));
    tcp.receive_into(from, kBootstrapTag, all.subspan(known * bytes, more * bytes));
    tcp.send(std::span(&to, 1), kBootstrapTag, all.first(more * bytes));
    for (;;) {
      TRY(tcp.advance());
      if (tcp.all_received() && tcp.all_sent()) break;
      TRY(tcp.wait());
    }
  }
  std::vector<std::string> by_rank(ranks);
  for (size_t i = 0; i < ranks; ++i)
    by_rank[(size_t(tcp.rank()) + i) % ranks] = texts.substr(i * bytes, bytes);
  return by_rank;
}

}  // namespace

// -- connecting

Result<std::unique_ptr<Transport>> ShmTransport::make(
    std::unique_ptr<TcpTransport> tcp, std::shared_ptr<RegisteredMemory> registered) {
  std::unique_ptr<ShmTransport> transport(new ShmTransport(std::move(tcp), std::move(registered)));
  if (transport->size() > 1)
    TRY(transport->attach().in("sharing memory with the ranks on this machine"));
  return std::unique_ptr<Transport>(std::move(transport));
}

ShmTransport::ShmTransport(std::unique_ptr<TcpTransport> tcp,
                           std::shared_ptr<RegisteredMemory> registered)
    : tcp_(std::move(tcp)), registered_(std::move(registered)), peers_(size_t(tcp_->size())) {
  for (int rank = 0; rank < size(); ++rank) hosts_.push_back(rank);
}

ShmTransport::~ShmTransport() {
  if (own_.begin && !tcp_->failure()) own_.header().left.store(1, std::memory_order_release);
}

bool ShmTransport::has_left(int peer) const {
  const Peer& local = peers_[size_t(peer)];
  return tcp_->has_left(peer) ||
         (local.local && local.segment.header().left.load(std::memory_order_acquire) == 1);
}

// Makes the segment of this rank. Returns its address; empty when memory cannot be shared.
std::string ShmTransport::make_segment() {
  auto memory = SharedMemory::make("trainyard-ranks", Segment::bytes_for(size()));
  if (!memory) return "";
  SegmentAddress address;
  memory_ = *std::move(memory);
  own_ = {memory_.begin(), size()};
  CHECK(::getrandom(address.nonce.data(), sizeof address.nonce, 0) == ssize_t(sizeof address.nonce),
        "the kernel returns 16 random bytes");
  address.process = ::getpid();
  address.descriptor = memory_.descriptor();
  own_.header().nonce = address.nonce;
  own_.header().ranks = uint64_t(size());
  own_.header().cores = usable_cores();
  own_.header().magic = Segment::kMagic;
  return encode(address);
}

// Maps the segment of a rank. Returns true if it is the segment that the rank made.
bool ShmTransport::map_segment(Peer& peer, const SegmentAddress& address) {
  auto mapping = map_of(address.process, address.descriptor, Segment::bytes_for(size()));
  if (!mapping) return false;
  peer.segment = {mapping->begin(), size()};
  if (peer.segment.header().magic != Segment::kMagic ||
      peer.segment.header().nonce != address.nonce)
    return false;
  peer.mapping = *std::move(mapping);
  peer.process = address.process;
  return true;
}

Result<void> ShmTransport::attach() {
  std::string mine = make_segment();
  mine.resize(kAddressBytes, '\0');
  const auto addresses = TRY(exchange_texts(*tcp_, mine));

  std::string attached(size_t(size()), '0');
  attached[size_t(rank())] = '1';
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == this->rank() || !memory_.begin()) continue;
    const auto theirs = decode_address(std::string_view(addresses[size_t(rank)].c_str()));
    if (theirs && map_segment(peers_[size_t(rank)], *theirs)) attached[size_t(rank)] = '1';
  }

  // Two ranks are local to each other if both could attach; all ranks compute the same result.
  const auto views = TRY(exchange_texts(*tcp_, attached));
  const auto mutual = [&](int a, int b) {
    return views[size_t(a)][size_t(b)] == '1' && views[size_t(b)][size_t(a)] == '1';
  };
  for (int a = 0; a < size(); ++a) {
    for (int b = 0; b < a; ++b) {
      if (hosts_[size_t(b)] == b && mutual(a, b)) {
        hosts_[size_t(a)] = b;
        break;
      }
    }
  }
  int local = 1;
  CoreSet cores = join({}, usable_cores());
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == this->rank() || hosts_[size_t(rank)] != hosts_[size_t(this->rank())]) continue;
    ++local;
    if (!mutual(rank, this->rank())) continue;
    Peer& peer = peers_[size_t(rank)];
    cores = join(cores, peer.segment.header().cores);
    peer.local = true;
    peer.watch = ProcessWatch(peer.process);
    peer.regions.resize(kRegionsMax);
    has_local_ = true;
  }
  spins_max_ = local <= count(cores) ? kSpinsWithOwnCoreMax : kSpinsWithSharedCoreMax;
  // Ranks that are attached to different peers would count different cores, and choose different
  // plans.
  bool all_mutual = true;
  for (int a = 0; a < size(); ++a) {
    for (int b = 0; b < a; ++b) {
      const int host = hosts_[size_t(rank())];
      if (hosts_[size_t(a)] == host && hosts_[size_t(b)] == host) all_mutual &= mutual(a, b);
    }
  }
  if (all_mutual) ranks_per_core_ = (local + count(cores) - 1) / count(cores);
  return ok();
}

Result<std::unique_ptr<Transport>> ShmTransport::connect_members(
    const std::vector<int>& members, const std::vector<std::string>& offers, uint64_t key) {
  return make(TRY(tcp_->connect_over_tcp(members, offers, key)), registered_);
}

// -- sending

void ShmTransport::send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) {
  if (tcp_->failure()) return;  // nothing may follow the failure message
  std::span<const int> local = peers;
  const bool all_local =
      std::all_of(peers.begin(), peers.end(), [&](int peer) { return peers_[size_t(peer)].local; });
  if (!all_local) {
    remote_.assign(peers.begin(), peers.end());
    const auto middle = std::stable_partition(remote_.begin(), remote_.end(),
                                              [&](int peer) { return peers_[size_t(peer)].local; });
    local = std::span<const int>(remote_.begin(), middle);
    tcp_->send(std::span<const int>(middle, remote_.end()), tag, bytes);
    if (local.empty()) return;
  }
  put_or_keep({local, {}, tag, bytes, 0, SendMode::read});
}

void ShmTransport::send_writable(int peer, Tag tag, std::span<std::byte> bytes) {
  if (!peers_[size_t(peer)].local) return tcp_->send_writable(peer, tag, bytes);
  if (!tcp_->failure()) put_or_keep({std::span(&peer, 1), {}, tag, bytes, 0, SendMode::writable});
}

void ShmTransport::notify(int peer, Tag tag, std::span<const std::byte> bytes) {
  CHECK(peers_[size_t(peer)].local, "only messages to local ranks are written in place");
  if (!tcp_->failure()) put_or_keep({std::span(&peer, 1), {}, tag, bytes, 0, SendMode::in_place});
}

void ShmTransport::put_or_keep(Outgoing message) {
  if (outgoing_.empty() && put(message)) return;
  message.kept_peers.assign(message.peers.begin(), message.peers.end());
  outgoing_.push_back(std::move(message));
  outgoing_.back().peers = outgoing_.back().kept_peers;
}

bool ShmTransport::lane_has_space(int peer) const {
  const uint64_t consumed = own_.lane(peer).consumed.load(std::memory_order_acquire);
  return peers_[size_t(peer)].put - consumed < kLaneEntries;
}

std::byte* ShmTransport::outbox_space(size_t bytes) {
  // reuses the same cache lines
  if (blocks_.empty()) outbox_begin_ = outbox_end_ = 0;
  const bool wrapped = outbox_end_ < outbox_begin_;
  size_t begin = outbox_end_;
  if (wrapped) {
    if (outbox_begin_ - outbox_end_ <= bytes) return nullptr;
  } else if (kOutboxBytes - outbox_end_ < bytes) {
    if (outbox_begin_ <= bytes) return nullptr;
    begin = 0;
  }
  outbox_end_ = begin + bytes;
  return own_.outbox() + begin;
}

bool ShmTransport::was_read(const Reader& reader) const {
  return own_.lane(reader.peer).consumed.load(std::memory_order_acquire) >= reader.sequence;
}

bool ShmTransport::oldest_block_was_read() const {
  return !blocks_.empty() &&
         std::all_of(readers_.begin(), readers_.begin() + ptrdiff_t(blocks_.front().readers),
                     [this](const Reader& reader) { return was_read(reader); });
}

void ShmTransport::reclaim() {
  while (oldest_block_was_read()) {
    readers_.erase(readers_.begin(), readers_.begin() + ptrdiff_t(blocks_.front().readers));
    outbox_begin_ = blocks_.front().end;
    blocks_.pop_front();
  }
}

void ShmTransport::drop_references() const {
  while (!references_.empty() && was_read(references_.front())) references_.pop_front();
}

void ShmTransport::put_entry(int peer, const Outgoing& message, size_t part_bytes, uint32_t region,
                             uint32_t generation, uint64_t offset) {
  Peer& to = peers_[size_t(peer)];
  Entry& entry = own_.lane(peer).entries[to.put % kLaneEntries];
  entry.operation = message.tag.operation;
  entry.label = message.tag.label;
  entry.message_bytes = message.bytes.size();
  entry.part_bytes = part_bytes;
  entry.region = region;
  entry.region_generation = generation;
  entry.offset = offset;
  entry.writable = message.mode == SendMode::writable && region != 0 ? 1 : 0;
  entry.sequence.store(++to.put, std::memory_order_release);
}

bool ShmTransport::put(Outgoing& message) {
  const auto can_put = [&] {
    return std::all_of(message.peers.begin(), message.peers.end(),
                       [&](int peer) { return lane_has_space(peer); });
  };
  if (message.mode == SendMode::in_place) {
    if (!can_put()) return false;
    for (const int peer : message.peers)
      put_entry(peer, message, message.bytes.size(), kRegionInPlace, 0, 0);
    for (const int peer : message.peers) wake(peers_[size_t(peer)].segment.header());
    return true;
  }
  if (message.bytes.size() > kEagerBytesMax && message.put == 0) {
    const auto location = registered_->find(message.bytes);
    if (location.region != 0) {
      if (!can_put()) return false;
      Region& region = own_.header().regions[location.region];
      region.descriptor = location.descriptor;
      region.bytes = location.region_bytes;
      region.generation.store(location.generation, std::memory_order_release);
      for (const int peer : message.peers) {
        put_entry(peer, message, message.bytes.size(), location.region, location.generation,
                  location.offset);
        references_.push_back({peer, peers_[size_t(peer)].put});
      }
      for (const int peer : message.peers) wake(peers_[size_t(peer)].segment.header());
      return true;
    }
  }
  while (message.put < message.bytes.size()) {
    if (!can_put()) return false;
    const size_t part = std::min(message.bytes.size() - message.put, kFragmentBytesMax);
    reclaim();
    std::byte* const destination = outbox_space(to_lines(part));
    if (destination == nullptr) return false;
    std::memcpy(destination, message.bytes.data() + message.put, part);
    for (const int peer : message.peers) {
      put_entry(peer, message, part, 0, 0, uint64_t(destination - own_.outbox()));
      readers_.push_back({peer, peers_[size_t(peer)].put});
    }
    blocks_.push_back({outbox_end_, message.peers.size()});
    message.put += part;
    for (const int peer : message.peers) wake(peers_[size_t(peer)].segment.header());
  }
  return true;
}

bool ShmTransport::all_sent() const {
  if (!outgoing_.empty()) return false;
  drop_references();
  return references_.empty() && tcp_->all_sent();
}

// -- receiving

void ShmTransport::receive_into(int peer, Tag tag, std::span<std::byte> into) {
  Peer& from = peers_[size_t(peer)];
  if (!from.local) return tcp_->receive_into(peer, tag, into);
  ++receives_open_;
  if (from.expected.empty()) waiting_.push_back(peer);
  from.expected.push_back({tag, into, false, 0});
}

void ShmTransport::receive(int peer, Tag tag, std::span<std::byte> destination) {
  Peer& from = peers_[size_t(peer)];
  if (!from.local) return tcp_->receive(peer, tag, destination);
  if (tcp_->failure()) return;  // earlier messages may never be released
  CHECK(from.arrived == nullptr, "the former message was released");
  if (from.expected.empty()) waiting_.push_back(peer);
  from.expected.push_back({tag, destination, true, 0});
}

const std::byte* ShmTransport::arrived(int peer) {
  if (tcp_->failure()) return nullptr;
  return peers_[size_t(peer)].local ? peers_[size_t(peer)].arrived : tcp_->arrived(peer);
}

void ShmTransport::release(int peer) {
  Peer& from = peers_[size_t(peer)];
  if (!from.local) return tcp_->release(peer);
  CHECK(from.arrived != nullptr, "the released message has arrived");
  from.arrived = nullptr;
  from.writable = nullptr;
  if (std::exchange(from.arrived_in_lane, false)) consume(from);
}

void ShmTransport::consume(Peer& peer) {
  peer.segment.lane(rank()).consumed.store(++peer.consumed, std::memory_order_release);
  wake(peer.segment.header());
}

bool ShmTransport::has_entry(const Peer& peer) const {
  const Entry& entry = peer.segment.lane(rank()).entries[peer.consumed % kLaneEntries];
  return entry.sequence.load(std::memory_order_acquire) == peer.consumed + 1;
}

Result<bool> ShmTransport::has_message(int peer) {
  if (tcp_->failure()) return *tcp_->failure();
  const Peer& from = peers_[size_t(peer)];
  if (!from.local) return tcp_->has_message(peer);
  if (has_entry(from)) return true;
  TRY(tcp_->poll_sockets(0ms));
  TRY(tcp_->advance());
  const bool ended = from.watch.ended();
  if (has_entry(from)) return true;  // written before the process ended
  if (ended) TRY(check_processes());
  return false;
}

Result<const std::byte*> ShmTransport::bytes_of_entry(Peer& peer, const Entry& entry) {
  if (entry.region == 0) {
    if (entry.offset > kOutboxBytes || entry.part_bytes > kOutboxBytes - entry.offset)
      return corrupt("a message outside the outbox");
    return peer.segment.outbox() + entry.offset;
  }
  if (entry.region >= kRegionsMax) return corrupt("a message in an invalid region");
  Peer::Mapped& mapped = peer.regions[entry.region];
  if (mapped.generation != entry.region_generation || !mapped.mapping) {
    const Region& region = peer.segment.header().regions[entry.region];
    if (region.generation.load(std::memory_order_acquire) != entry.region_generation)
      return corrupt("a message in memory that was freed");
    mapped.mapping =
        TRY(map_of(peer.process, region.descriptor, region.bytes).in("mapping registered memory"));
    mapped.generation = entry.region_generation;
  }
  if (entry.offset > mapped.mapping.bytes() ||
      entry.part_bytes > mapped.mapping.bytes() - entry.offset)
    return corrupt("a message outside its region");
  return mapped.mapping.begin() + entry.offset;
}

Result<void> ShmTransport::pull(int peer) {
  Peer& from = peers_[size_t(peer)];
  while (!from.expected.empty() && from.arrived == nullptr) {
    const Entry& entry = from.segment.lane(rank()).entries[from.consumed % kLaneEntries];
    if (entry.sequence.load(std::memory_order_acquire) != from.consumed + 1) return ok();
    Expected& expected = from.expected.front();
    if (Tag{entry.operation, entry.label} != expected.tag ||
        entry.message_bytes != expected.bytes.size()) {
      return tcp_->fail(tcp_->other_operation(peer, entry.operation, entry.message_bytes,
                                              expected.tag.operation, expected.bytes.size()),
                        peer);
    }
    if (entry.region == kRegionInPlace && !expected.kept &&
        entry.part_bytes == expected.bytes.size()) {
      spins_ = 0;
      consume(from);
      --receives_open_;
      from.expected.pop_front();
      continue;
    }
    auto bytes = bytes_of_entry(from, entry);
    if (bytes && entry.part_bytes > expected.bytes.size() - expected.received)
      bytes = corrupt("a message exceeds its announced length");
    if (!bytes && bytes.error().kind == Kind::not_found) {
      from.unreachable = true;
      return ok();
    }
    if (!bytes) return tcp_->fail(std::move(bytes).error().in(tcp_->name(peer)), peer);
    spins_ = 0;
    if (expected.kept && entry.part_bytes == expected.bytes.size()) {
      from.arrived = *bytes;
      // The mapping is writable when the peer sent registered memory with send_writable().
      from.writable =
          entry.writable == 1 && entry.region != 0 ? const_cast<std::byte*>(*bytes) : nullptr;
      from.arrived_in_lane = true;
      from.expected.pop_front();
      return ok();
    }
    std::memcpy(expected.bytes.data() + expected.received, *bytes, entry.part_bytes);
    expected.received += entry.part_bytes;
    consume(from);
    if (expected.received < expected.bytes.size()) continue;
    if (expected.kept) {
      from.arrived = expected.bytes.data();
    } else {
      --receives_open_;
    }
    from.expected.pop_front();
  }
  return ok();
}

Result<void> ShmTransport::advance() {
  if (tcp_->failure()) return *tcp_->failure();
  while (!outgoing_.empty() && put(outgoing_.front())) {
    outgoing_.pop_front();
    spins_ = 0;
  }
  // Lets can_progress() report each read message only once; otherwise wait() would return at once
  // and never check whether peers are alive.
  if (!outgoing_.empty()) reclaim();
  drop_references();
  for (size_t i = 0; i < waiting_.size();) {
    TRY(pull(waiting_[i]));
    if (peers_[size_t(waiting_[i])].expected.empty()) {
      waiting_[i] = waiting_.back();
      waiting_.pop_back();
    } else {
      ++i;
    }
  }
  if (tcp_->is_busy()) TRY(tcp_->advance());
  return ok();
}

// -- waiting

bool ShmTransport::can_progress() const {
  for (const int peer : waiting_) {
    const Peer& from = peers_[size_t(peer)];
    if (from.arrived == nullptr && !from.unreachable && has_entry(from)) return true;
  }
  if (!references_.empty() && was_read(references_.front())) return true;
  if (outgoing_.empty()) return false;
  if (oldest_block_was_read()) return true;
  const auto& peers = outgoing_.front().peers;
  return readers_.empty() &&
         std::all_of(peers.begin(), peers.end(), [&](int peer) { return lane_has_space(peer); });
}

Result<void> ShmTransport::wait() {
  if (tcp_->failure()) return *tcp_->failure();
  const bool waits_for_local = !waiting_.empty() || !outgoing_.empty() || !references_.empty();
  if (!waits_for_local) {
    TRY(tcp_->wait());
    publish_report();
    return ok();
  }
  const bool waits_for_remote = tcp_->is_busy();
  constexpr int spins_between_polls = 64;  // polling the network costs as much as this many spins
  for (int i = 0; i < spins_max_; ++i) {
    if (can_progress()) return ok();
    if (waits_for_remote && i % spins_between_polls == 0) {
      TRY(tcp_->poll_sockets(0ms));
      if (tcp_->has_readable()) return ok();
    }
    relax_core();
  }
  for (; spins_ < kYieldsMax; ++spins_) {
    ::sched_yield();
    // Most waits end after one yield: they need no clock.
    if (spins_ == 1) yields_since_ = std::chrono::steady_clock::now();
    if (spins_ > 1 && std::chrono::steady_clock::now() - yields_since_ > kYieldingMax)
      spins_ = kYieldsMax - 1;
    for (int i = 0; i < std::min(spins_max_, kSpinsBetweenYieldsMax); ++i) {
      if (can_progress()) return ok();
      relax_core();
    }
    if (waits_for_remote) {
      TRY(tcp_->poll_sockets(0ms));
      if (tcp_->has_readable()) return ok();
    }
  }
  if (spins_ == kYieldsMax) {
    ++spins_;
    tcp_->progressed();  // the timeout begins when a wait becomes long
  }
  // First announces that this rank sleeps, then checks again: a sender first writes its message,
  // then checks whether the rank sleeps.
  std::atomic<uint32_t>& asleep = own_.header().asleep;
  asleep.store(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool woken = can_progress();
  if (!woken) sleep_on(asleep, waits_for_remote ? 1 : kSleepMaxMs);
  asleep.store(0, std::memory_order_relaxed);
  if (woken || can_progress()) return ok();
  return check_peers();
}

Result<void> ShmTransport::check_processes() {
  for (int peer = 0; peer < size(); ++peer) {
    const Peer& local = peers_[size_t(peer)];
    if (local.local && local.watch.ended() && !has_left(peer) && !can_progress())
      return tcp_->fail(unavailable(tcp_->name(peer) + " exited"), peer);
  }
  return ok();
}

Result<void> ShmTransport::check_peers() {
  TRY(tcp_->poll_sockets(0ms));
  TRY(tcp_->advance());
  TRY(tcp_->check_cancelled());
  std::vector<int> waited_for = waiting_;
  if (!outgoing_.empty())
    waited_for.insert(waited_for.end(), outgoing_.front().peers.begin(),
                      outgoing_.front().peers.end());
  for (const Reader& reader : references_) {
    if (!was_read(reader)) waited_for.push_back(reader.peer);
  }
  TRY(check_processes());
  for (const int peer : waited_for) {
    if (has_left(peer) && !can_progress())
      return tcp_->fail(unavailable(tcp_->name(peer) + " exited"), peer);
  }
  read_reports();
  const std::vector<int> remote = tcp_->waited_for();
  waited_for.insert(waited_for.end(), remote.begin(), remote.end());
  TRY(tcp_->check_timeout(waited_for));
  publish_report();
  return ok();
}

void ShmTransport::publish_report() {
  if (own_.begin == nullptr) return;
  const uint64_t report = uint64_t{tcp_->reports_sent()} << 32 | uint32_t(tcp_->named());
  own_.header().report.store(report, std::memory_order_relaxed);
}

void ShmTransport::read_reports() {
  for (int rank = 0; rank < size(); ++rank) {
    Peer& peer = peers_[size_t(rank)];
    if (!peer.local) continue;
    const uint64_t report = peer.segment.header().report.load(std::memory_order_relaxed);
    const auto named = uint32_t(report);
    if (std::exchange(peer.report, report) != report && named < uint32_t(size()))
      tcp_->add_report(rank, int(named));
  }
}

}  // namespace trainyard::collectives
