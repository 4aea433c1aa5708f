// Reads one epoch of a channel as bytes, in order, with prefetching.
//
// kAheadItems threads take items (texts, or objects of the store) from the caller's source, one at
// a time, and read each into a backlog of kAheadChunks chunks. The reader empties the backlogs in
// order. So several small objects are fetched at once, a large one streams through, and both
// constants limit the memory (8 MiB per feed).
//
// Threads: kAheadItems of its own, joined by the destructor; next() is confined to one thread,
// stop() is not. Errors: the error of the first item that could not be read, once the reader
// reaches it, with the item's name. If its bytes were damaged, some of them may have been read.
// Lifetime: the constructor's arguments must outlive it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "data/object_stream.hpp"
#include "data/stop.hpp"

namespace trainyard::data {

inline constexpr size_t kAheadItems = 4;          // at once: hides the latency of the next objects
inline constexpr size_t kAheadChunks = 4;         // per item
inline constexpr size_t kChunkBytes = 512 << 10;  // half of the largest pipe

struct Item {
  std::string text;                       // the bytes, if `from` is nullopt
  std::optional<objects::Location> from;  // the object that has the bytes
};

struct Form {
  bool gunzip = false;     // objects are gzip
  bool record_io = false;  // each item becomes one RecordIO record
};

class Feed {
 public:
  // Returns the next item; nullopt: there are no more. Called by one thread at a time.
  using Source = std::function<Result<std::optional<Item>>()>;

  Feed(objects::Objects& objects, Clock& clock, Form form, Source source);
  ~Feed();

  // Returns the next bytes; nullopt: the epoch has ended. Errors also: cancelled: stopped.
  Result<std::optional<std::vector<char>>> next();
  // Ends all running work; from any thread.
  void stop();

 private:
  struct Backlog {
    std::deque<std::vector<char>> chunks;
    bool pushed = false;  // a chunk was added; used by the thread that fills it
    bool done = false;
    Result<void> outcome;
  };

  void work();
  // Fetches an item, and once more if its bytes were damaged and none of them was pushed: then the
  // item is shorter than a chunk.
  Result<void> fetch_undamaged(const Item& item, Backlog& backlog);
  Result<void> fetch(const Item& item, Backlog& backlog);
  Result<uint64_t> copy(ByteStream& stream, uint64_t expected, std::vector<char>& chunk,
                        Backlog& backlog);
  Result<void> push(Backlog& backlog, std::vector<char> chunk);
  Result<std::unique_ptr<ByteStream>> open(const objects::Location& from, uint64_t& bytes);

  objects::Objects& objects_;
  Clock& clock_;
  const Form form_;
  const Source source_ GUARDED_BY(source_mutex_);
  Stop stop_;

  Mutex source_mutex_;  // taken before mutex_
  Mutex mutex_;
  ConditionVariable changed_;
  // Each backlog is shared with the thread that fills it, which may free it.
  std::deque<std::shared_ptr<Backlog>> backlogs_ GUARDED_BY(mutex_);
  bool exhausted_ GUARDED_BY(mutex_) = false;  // the source has no more
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::data
