#include "collectives/transport/memory/memory_transport.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/check.hpp"

namespace trainyard::collectives {
namespace {

struct Message {
  Tag tag;
  std::vector<std::byte> bytes;
};

// What lies between the ranks. All members guarded by mutex.
struct Table {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<Message>> messages;  // by (from, to)
  std::optional<std::string> ended;                             // by whom and why
  uint64_t changes = 0;  // so that a wait cannot miss what happened before it began
};

class Seat final : public MemoryTransport {
 public:
  Seat(std::shared_ptr<Table> table, int rank, int size)
      : table_(std::move(table)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t bytes_sent() const override { return bytes_sent_; }

  void abandon(std::string_view why) override {
    const std::scoped_lock lock(table_->mutex);
    if (!table_->ended) table_->ended = "rank " + std::to_string(rank_) + ": " + std::string(why);
    change();
  }

  void send(int peer, Tag tag, std::span<const std::byte> bytes) override {
    CHECK(peer >= 0 && peer < size_ && peer != rank_, "messages go to another rank");
    const std::scoped_lock lock(table_->mutex);
    table_->messages[{rank_, peer}].push_back({tag, {bytes.begin(), bytes.end()}});
    bytes_sent_ += bytes.size();
    change();
  }

  void receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    expected_.push_back({peer, tag, bytes});
  }

  Result<bool> advance() override {
    const std::scoped_lock lock(table_->mutex);
    if (table_->ended) return unavailable(*table_->ended);
    seen_ = table_->changes;
    // Receives of one peer are met in their order: the first that is still open blocks the peer's later ones.
    std::vector<int> waiting_for;
    for (auto each = expected_.begin(); each != expected_.end();) {
      auto& queue = table_->messages[{each->peer, rank_}];
      if (queue.empty() ||
          std::find(waiting_for.begin(), waiting_for.end(), each->peer) != waiting_for.end()) {
        waiting_for.push_back(each->peer);
        ++each;
        continue;
      }
      const Message& message = queue.front();
      if (message.tag != each->tag || message.bytes.size() != each->bytes.size()) {
        return conflict("rank " + std::to_string(each->peer) + " is in another operation than rank " +
                        std::to_string(rank_));
      }
      std::copy(message.bytes.begin(), message.bytes.end(), each->bytes.begin());
      queue.pop_front();
      each = expected_.erase(each);
    }
    return expected_.empty();
  }

  Result<void> wait() override {
    std::unique_lock lock(table_->mutex);
    table_->changed.wait(lock, [&] { return table_->changes != seen_; });
    return ok();
  }

 private:
  struct Expected {
    int peer;
    Tag tag;
    std::span<std::byte> bytes;
  };

  // Requires: table_->mutex is held.
  void change() {
    ++table_->changes;
    table_->changed.notify_all();
  }

  const std::shared_ptr<Table> table_;  // shared by all seats of the group; the last one frees it
  const int rank_;
  const int size_;
  std::deque<Expected> expected_;
  uint64_t seen_ = 0;
  uint64_t bytes_sent_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<MemoryTransport>> connect_in_memory(int size) {
  CHECK(size > 0, "a group has a rank");
  auto table = std::make_shared<Table>();
  std::vector<std::unique_ptr<MemoryTransport>> seats;
  for (int rank = 0; rank < size; ++rank) seats.push_back(std::make_unique<Seat>(table, rank, size));
  return seats;
}

}  // namespace trainyard::collectives
