// An EventMerge returns the events of streams in the order of their key (time, stream, position).
//
// A heap contains streams, segments and blocks that were not opened yet, and loaded blocks, each
// with the least key that it can yield. The item at the top is opened or, if it is a loaded block,
// its next event is returned. So blocks are read only when the merge reaches them, and only events
// of blocks that overlap in time are in memory.
//
// Memory: the wanted events of loaded blocks, up to `held_bytes_max` plus one block; 64 bytes for
// each segment in the time range, and for each block of the segments that the merge has reached; 80
// more for each of these blocks with wanted events. If the limit is exceeded, the loaded block
// whose next event is the latest is dropped; it is read again when the merge reaches it.
//
// Cost: each block that overlaps the time range is read once, unless it was dropped.
//
// Threads: confined to one thread at a time. Errors: those of Stream. Lifetime: what
// FilterSource::open uses outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "observe/logs.hpp"
#include "observe/stream.hpp"

namespace trainyard::observe {

struct EventKey {
  int64_t at = INT64_MIN;  // milliseconds
  uint64_t stream = 0;
  uint64_t position = 0;
  auto operator<=>(const EventKey&) const = default;
};

struct FilterSource {
  uint64_t id = 0;
  std::string name;
  std::optional<Instant> first_event;
  std::optional<Instant> last_event;
  // called when the merge reaches the stream's first event
  std::function<Result<std::shared_ptr<Stream>>()> open;
};

struct MergeSettings {
  TimeRange times;
  EventKey least = {};   // events before this key are left out
  ChooseMessage wanted;  // nullptr: all events
  uint64_t held_bytes_max = UINT64_MAX;
};

class EventMerge {
 public:
  EventMerge(std::vector<FilterSource> sources, const MergeSettings& settings);

  bool ended() const { return heap_.empty(); }
  // Returns a key that no later event is less than. Requires: !ended().
  const EventKey& key() const { return heap_.top().key; }
  // Returns whether the next step reads files. Requires: !ended().
  bool reads_next() const {
    const Item& top = heap_.top();
    return top.kind != Kind::loaded || loaded_[top.slot].dropped;
  }
  // Opens the item at the top of the heap, or returns its next event, without id. Requires:
  // !ended().
  Result<std::optional<FilteredEvent>> step();

  uint64_t bytes_read() const { return bytes_read_; }
  // Returns the number of events in the time range that were compared with `wanted`; each event is
  // counted once.
  uint64_t events_seen() const { return events_seen_; }
  uint64_t message_bytes_seen() const { return message_bytes_seen_; }
  uint64_t held_bytes() const { return held_bytes_; }

 private:
  enum class Kind : uint8_t { stream, segment, block, loaded };  // orders items with equal keys
  struct Item {
    EventKey key;
    Kind kind = Kind::stream;
    bool seen = false;  // a block that was loaded and dropped before
    uint32_t source = 0;
    Stream::Part part = {};  // a segment or block
    size_t slot = 0;         // in loaded_
  };
  struct Later {
    bool operator()(const Item& a, const Item& b) const;
  };
  struct Event {
    int64_t at, ingested;
    uint64_t position;
    size_t begin, bytes;  // in Loaded::text
  };
  // The wanted events of a block that were not returned yet.
  struct Loaded {
    std::string text;
    std::vector<Event> events;  // in the order of their keys
    size_t next = 0;
    bool dropped = false;
    size_t held_bytes = 0;
  };

  Result<void> open(const Item& item);
  void add_parts(const Item& item, Kind kind, const std::vector<Stream::Part>& parts);
  Result<void> load(Stream& stream, const Item& item);
  Result<Loaded> decode(const std::string& bytes, const Item& item);
  // Adds the block to loaded_, and drops others while the limit is exceeded.
  void hold(const Item& item, Loaded block);
  // Returns false if there is no other block to drop.
  bool drop_latest(size_t except_slot);
  void release(size_t slot);
  void push_next(Item item);
  FilteredEvent take(const Item& item);

  const std::vector<FilterSource> sources_;
  const MergeSettings settings_;
  std::priority_queue<Item, std::vector<Item>, Later> heap_;
  std::vector<Loaded> loaded_;
  std::vector<size_t> free_;  // indexes in loaded_
  uint64_t bytes_read_ = 0, events_seen_ = 0, message_bytes_seen_ = 0, held_bytes_ = 0;
};

}  // namespace trainyard::observe
