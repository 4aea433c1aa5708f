#include "collectives/transport/memory/memory_transport.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::collectives {
namespace {

struct Message {
  Tag tag;
  std::span<const std::byte> bytes;
  std::byte* writable = nullptr;
  bool notified = false;  // the bytes are already where the receiver wants them
};

// Connects the ranks.
struct RankTable {
  explicit RankTable(int size)
      : messages(size_t(size) * size_t(size)), unread(size_t(size)), left(size_t(size)) {}

  Mutex mutex;
  ConditionVariable changed;
  std::vector<std::deque<Message>> messages GUARDED_BY(mutex);  // by from * size + to
  std::vector<size_t> unread GUARDED_BY(mutex);                 // by sender
  std::vector<bool> left GUARDED_BY(mutex);                     // by rank
  std::optional<Error> ended
      // the permanent error of the group, which names the rank at fault
      GUARDED_BY(mutex);
  // lets wait() detect changes that happened before it began
  uint64_t changes GUARDED_BY(mutex) = 0;
  std::map<std::pair<uint64_t, std::vector<int>>, std::shared_ptr<RankTable>> among
      GUARDED_BY(mutex);
};

class RankTransport final : public MemoryTransport {
 public:
  RankTransport(std::shared_ptr<RankTable> table, int rank, int size)
      : table_(std::move(table)), rank_(rank), size_(size), held_messages_(size_t(size)) {}

  ~RankTransport() override {
    const MutexLock lock(table_->mutex);
    // A rank that leaves while others still have to read its bytes ends the group for them.
    table_->left[size_t(rank_)] = true;
    if (table_->unread[size_t(rank_)] > 0) end(unavailable(left_message(rank_)));
    change();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t bytes_sent() const override { return bytes_sent_; }
  uint64_t messages_sent() const override { return messages_sent_; }

  std::vector<int> hosts() const override { return std::vector<int>(size_t(size_), 0); }
  Result<std::string> offer() override { return std::string("here"); }
  Result<std::unique_ptr<Transport>> connect_members(const std::vector<int>& members,
                                                     const std::vector<std::string>&,
                                                     uint64_t key) override {
    const MutexLock lock(table_->mutex);
    auto& table = table_->among[{key, members}];
    if (!table) table = std::make_shared<RankTable>(int(members.size()));
    const auto member = std::find(members.begin(), members.end(), rank_);
    return std::unique_ptr<Transport>(
        std::make_unique<RankTransport>(table, int(member - members.begin()), int(members.size())));
  }

  void abandon(std::string_view why) override {
    const MutexLock lock(table_->mutex);
    end(unavailable("rank " + std::to_string(rank_) + ": " + std::string(why)));
  }

  // After the group has failed, nothing is sent or received: earlier messages may never be
  // released.
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override {
    if (failed_) return;
    const MutexLock lock(table_->mutex);
    for (const int peer : peers) put(peer, {tag, bytes});
    change();
  }
  void send_writable(int peer, Tag tag, std::span<std::byte> bytes) override {
    if (failed_) return;
    const MutexLock lock(table_->mutex);
    put(peer, {tag, bytes, bytes.data()});
    change();
  }
  void notify(int peer, Tag tag, std::span<const std::byte> bytes) override {
    if (failed_) return;
    const MutexLock lock(table_->mutex);
    put(peer, {tag, bytes, nullptr, true});
    change();
  }

  void receive_into(int peer, Tag tag, std::span<std::byte> into) override {
    if (!failed_) receives_.push_back({peer, tag, into});
  }

  void receive(int peer, Tag tag, std::span<std::byte> destination) override {
    if (failed_) return;
    CHECK(!held_messages_[size_t(peer)].open, "one message of a peer is kept at a time");
    held_messages_[size_t(peer)] = {true, {peer, tag, destination}, nullptr, nullptr};
    order_.push_back(peer);
  }

  const std::byte* arrived(int peer) override {
    return failed_ ? nullptr : held_messages_[size_t(peer)].bytes;
  }
  std::byte* writable(int peer) override { return held_messages_[size_t(peer)].writable; }

  void release(int peer) override {
    CHECK(held_messages_[size_t(peer)].bytes != nullptr, "the released message has arrived");
    held_messages_[size_t(peer)] = {};
    std::erase(order_, peer);
    const MutexLock lock(table_->mutex);
    pop(peer);
    change();
  }

  Result<bool> has_message(int peer) override {
    TRY(advance());
    const MutexLock lock(table_->mutex);
    return !queue(peer, rank_).empty();
  }

  bool all_received() const override { return receives_.empty(); }
  bool all_sent() const override {
    const MutexLock lock(table_->mutex);
    return table_->unread[size_t(rank_)] == 0;
  }

  Result<void> advance() override {
    const MutexLock lock(table_->mutex);
    if (!table_->ended) {
      if (auto moved = move(); !moved) end(std::move(moved).error());
    }
    if (!table_->ended) return ok();
    failed_ = true;
    return *table_->ended;
  }

  Result<void> wait() override {
    MutexLock lock(table_->mutex);
    table_->changed.wait(lock, [&]() REQUIRES(table_->mutex) { return table_->changes != seen_; });
    return ok();
  }

 private:
  struct Expected {
    int peer = 0;
    Tag tag;
    std::span<std::byte> bytes;
  };
  struct HeldMessage {
    bool open = false;
    Expected expected;
    const std::byte* bytes = nullptr;
    std::byte* writable = nullptr;
  };

  static std::string left_message(int peer) { return "rank " + std::to_string(peer) + " exited"; }

  // Delivers the messages that can be delivered.
  Result<void> move() REQUIRES(table_->mutex) {
    seen_ = table_->changes;
    // A plan receives from a peer before it receives into the output in the same round. A kept
    // message blocks the queue until it is released.
    for (const int peer : order_) {
      HeldMessage& held = held_messages_[size_t(peer)];
      if (held.bytes != nullptr) continue;
      if (queue(peer, rank_).empty()) {
        if (table_->left[size_t(peer)]) return unavailable(left_message(peer));
        continue;
      }
      TRY(compare(held.expected));
      held.bytes = queue(peer, rank_).front().bytes.data();
      held.writable = queue(peer, rank_).front().writable;
    }
    for (auto each = receives_.begin(); each != receives_.end();) {
      // Receives from one peer are matched in order: an open one blocks the later ones.
      const bool empty = queue(each->peer, rank_).empty();
      if (held_messages_[size_t(each->peer)].open || empty) {
        if (empty && table_->left[size_t(each->peer)]) return unavailable(left_message(each->peer));
        ++each;
        continue;
      }
      TRY(compare(*each));
      const Message& message = queue(each->peer, rank_).front();
      if (!message.notified)
        std::copy(message.bytes.begin(), message.bytes.end(), each->bytes.begin());
      pop(each->peer);
      change();
      each = receives_.erase(each);
    }
    // A rank that has left will not read what this rank sent to it.
    for (int peer = 0; table_->unread[size_t(rank_)] > 0 && peer < size_; ++peer) {
      if (table_->left[size_t(peer)] && !queue(rank_, peer).empty())
        return unavailable(left_message(peer));
    }
    return ok();
  }

  std::deque<Message>& queue(int from, int to) REQUIRES(table_->mutex) {
    return table_->messages[size_t(from) * size_t(size_) + size_t(to)];
  }
  void put(int peer, const Message& message) REQUIRES(table_->mutex) {
    CHECK(peer >= 0 && peer < size_ && peer != rank_, "messages go to another rank");
    queue(rank_, peer).push_back(message);
    ++table_->unread[size_t(rank_)];
    bytes_sent_ += message.bytes.size();
    ++messages_sent_;
  }
  // The first error becomes the error of all ranks; it names the rank at fault.
  void end(Error error) REQUIRES(table_->mutex) {
    if (!table_->ended) table_->ended = std::move(error);
    change();
  }
  void change() REQUIRES(table_->mutex) {
    ++table_->changes;
    table_->changed.notify_all();
  }
  void pop(int peer) REQUIRES(table_->mutex) {
    queue(peer, rank_).pop_front();
    --table_->unread[size_t(peer)];
  }
  Result<void> compare(const Expected& expected) REQUIRES(table_->mutex) {
    const Message& message = queue(expected.peer, rank_).front();
    if (message.tag == expected.tag && message.bytes.size() == expected.bytes.size()) return ok();
    return conflict("rank " + std::to_string(expected.peer) +
                    " is in a different operation from rank " + std::to_string(rank_) +
                    ": all ranks must call the same operations in the same order");
  }

  const std::shared_ptr<RankTable>
      table_;  // shared by all ranks of the group; the last one frees it
  const int rank_;
  const int size_;
  std::vector<HeldMessage> held_messages_;  // by peer
  std::vector<int> order_;                  // peers of which a message is kept
  std::deque<Expected> receives_;
  bool failed_ = false;
  uint64_t seen_ = 0;
  uint64_t bytes_sent_ = 0;
  uint64_t messages_sent_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<MemoryTransport>> connect_in_memory(int size) {
  CHECK(size > 0, "a group has at least one rank");
  auto table = std::make_shared<RankTable>(size);
  std::vector<std::unique_ptr<MemoryTransport>> transports;
  for (int rank = 0; rank < size; ++rank)
    transports.push_back(std::make_unique<RankTransport>(table, rank, size));
  return transports;
}

}  // namespace trainyard::collectives
