// Reads one epoch of a channel as bytes, in order, with prefetching.
//
// kAheadItems threads take items (texts, or objects of the store) one by one from the caller's
// source, and read each into a backlog of kAheadChunks chunks; the reader takes the backlogs in
// order. Thus several small objects are fetched at once, a large one streams through, and both
// constants bound the memory (8 MiB per feed).
//
// Threads: some of its own, joined by the destructor; next() is confined to one, stop() is not.
// Errors: that of the first item that could not be read, when it is reached, naming it.
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
inline constexpr size_t kChunkBytes = 512 << 10;  // a pipe holds 1 MiB at most

struct Item {
  std::string text;                       // the bytes, when `from` is nothing
  std::optional<objects::Location> from;  // the object that has the bytes
};

struct Form {
  bool gunzip = false;     // objects are gzip
  bool record_io = false;  // each item becomes one RecordIO record
};

class Feed {
 public:
  // Called by one thread at a time; nothing: there are no more.
  using Source = std::function<Result<std::optional<Item>>()>;

  Feed(objects::Objects& objects, Clock& clock, Form form, Source source);
  ~Feed();

  // Returns the next bytes; nothing: the epoch is over. Errors also: cancelled: stopped.
  Result<std::optional<std::vector<char>>> next();
  // Ends all running work; from any thread.
  void stop();

 private:
  struct Backlog {
    std::deque<std::vector<char>> chunks;
    bool done = false;
    Result<void> outcome;
  };

  void work();
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
  std::deque<std::shared_ptr<Backlog>> backlogs_
      // shared with the thread that fills it, which may free it
      GUARDED_BY(mutex_);
  bool exhausted_ GUARDED_BY(mutex_) = false;  // the source has no more
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::data
