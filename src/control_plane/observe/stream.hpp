// A Stream is one log stream on disk: its segments, their sparse index, and its state in memory while it is in use.
//
// An append writes its events and a commit record to the end of the last segment and syncs it; appenders that
// arrive meanwhile share the next sync. No file stays open between calls.
//
// Threads: callable from anywhere. Errors: as logs.hpp. Lifetime: the catalogue and the settings outlive it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "observe/catalogue.hpp"
#include "observe/logs.hpp"
#include "observe/segment.hpp"

namespace trainyard::observe {

class Stream {
 public:
  // `directory` holds the segments of all streams. Reads nothing yet.
  Stream(std::string directory, const StreamRow& row, const LogSettings& settings, Catalogue& catalogue);

  Result<void> append(const std::vector<LogEvent>& events, uint64_t batch, Instant now);
  Result<uint64_t> last_batch();
  Result<LogPage> read(const ReadQuery& query);
  Result<StreamSummary> summary();

  // What reads go by: a run of whole records in one file.
  struct Span {
    Block block;
    std::string path;
    uint64_t file_offset = 0;  // of block.begin
  };
  // The block that holds `position`, or the next one after it; nothing past the end.
  Result<std::optional<Span>> span_at(uint64_t position);
  // The last block that begins before `position`.
  Result<std::optional<Span>> span_before(uint64_t position);
  // Bytes of the span from `position` on. Errors also: not_found, when retention has removed it.
  static Result<std::string> load(const Span& span, uint64_t position);

  // Removes the segments before the last one that hold nothing newer.
  Result<void> retire(Instant before);
  // Removes all segments. Requires: the stream has no other user, and the catalogue has forgotten it.
  Result<void> remove_files();

  uint64_t id() const { return id_; }
  const StreamKey& key() const { return key_; }
  // Whether the catalogue says that it is open.
  bool open_in_catalogue();

 private:
  struct Segment {
    uint64_t number = 0;
    uint64_t base = 0;
    size_t header_bytes = 0;
  };
  struct Pending {
    std::string records;
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    int64_t ingested = INT64_MIN;
    uint64_t batch = 0;
    std::optional<Result<void>> result;
  };

  std::string path(uint64_t segment) const;
  std::string index_path(uint64_t segment) const;

  // All of these: with mutex_ held.
  Result<void> load_locked();
  // False when there is no such segment.
  Result<bool> load_segment(uint64_t number);
  // Takes up the whole appends in `bytes`, which begin at end().
  void scan(const std::string& bytes);
  void close_block();
  void write_index();
  Span span_of(const Block& block) const;
  uint64_t begin() const { return segments_.empty() ? 0 : segments_.front().base; }
  uint64_t end() const { return open_.end; }

  // Takes what waits, writes it, answers it. Unlocks while it writes.
  void lead(std::unique_lock<std::mutex>& lock);
  Result<void> write(const Segment& segment, bool is_new, uint64_t position, const std::string& bytes);

  const std::string directory_;
  const uint64_t id_;
  const StreamKey key_;
  const LogSettings& settings_;
  Catalogue& catalogue_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool loaded_ = false;
  bool open_in_catalogue_;
  uint64_t first_segment_;
  std::deque<Segment> segments_;
  std::deque<Block> blocks_;  // whole appends, without gaps
  Block open_;                // what follows them, shorter than a block
  uint64_t indexed_to_ = 0;   // the index files have the blocks before this position
  uint64_t last_batch_ = 0;
  std::optional<Error> broken_;   // a failed write that could not be undone
  std::deque<Pending*> waiting_;  // as many as there are threads that append
  bool leading_ = false;
};

}  // namespace trainyard::observe
