// A Stream is one log stream on disk: its segments with their sparse index, and, while it is in
// use, its state in memory (48 bytes per block).
//
// A search for blocks by time skips segments outside the time range, and searches the blocks of the
// others.
//
// An append writes its events and a commit record to the end of the last segment and syncs it.
// Appends that arrive meanwhile share the next sync. No file stays open between calls.
//
// Threads: callable from anywhere. Errors: as in logs.hpp. Lifetime: the catalogue and the settings
// outlive it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "observe/catalogue.hpp"
#include "observe/logs.hpp"
#include "observe/segment.hpp"

namespace trainyard::observe {

// AWS counts this number of bytes per event in addition to its message.
inline constexpr size_t kEventOverheadBytes = 26;

class Descriptor;

// An interval of event times, in milliseconds.
struct TimeRange {
  int64_t from = INT64_MIN;  // inclusive
  int64_t to = INT64_MAX;    // exclusive; INT64_MAX: no end

  bool has(int64_t at) const { return at >= from && (at < to || to == INT64_MAX); }
  // Returns whether it overlaps [first, last], which is empty if first > last.
  bool meets(int64_t first, int64_t last) const {
    return first <= last && last >= from && (first < to || to == INT64_MAX);
  }
};
TimeRange time_range(std::optional<Instant> from, std::optional<Instant> to);

class Stream {
 public:
  // `directory` contains the segments of all streams. They are read at the first use.
  Stream(std::string directory, const StreamRow& row, const LogSettings& settings,
         Catalogue& catalogue);

  Result<void> append(const std::vector<LogEvent>& events, uint64_t batch, Instant now);
  Result<uint64_t> last_batch();
  Result<LogPage> read(const ReadQuery& query);
  Result<StreamSummary> summary();

  // A unit of reading: a run of whole records in one file.
  struct Span {
    Block block;
    std::string path;
    uint64_t file_offset = 0;  // of block.begin
  };
  // Returns the first block that ends after `position` and overlaps the times, or nullopt.
  Result<std::optional<Span>> span_at(uint64_t position, const TimeRange& times);
  // Returns the last block that begins before `position` and overlaps the times, or nullopt.
  Result<std::optional<Span>> span_before(uint64_t position, const TimeRange& times);
  // The events from one position to another; none is before the time `first`.
  struct Part {
    uint64_t begin = 0;
    uint64_t end = 0;
    int64_t first = 0;
  };
  // Returns the segments that overlap the times.
  Result<std::vector<Part>> segments(const TimeRange& times);
  // Returns the blocks of a segment that overlap the times, without events that were appended after
  // segments() returned it. Returns none if retention has removed the segment.
  Result<std::vector<Part>> blocks(const Part& segment, const TimeRange& times);
  // Reads the bytes of a block that blocks() returned. Errors also: not_found, if retention has
  // removed it.
  Result<std::string> load(const Part& block);
  // Reads the bytes of the span from `position`. Errors also: not_found, if retention has removed
  // it.
  static Result<std::string> load(const Span& span, uint64_t position);

  // Removes segments whose events are all before `before`; never the last segment.
  Result<void> retire(Instant before);
  // Removes all segments; later appends of calls in progress fail. Requires: the catalogue no
  // longer has the stream.
  Result<void> remove_files();

  uint64_t id() const { return id_; }
  const StreamKey& key() const { return key_; }
  // Returns whether the stream is marked open in the catalogue.
  bool open_in_catalogue();

 private:
  struct Segment {
    uint64_t number = 0;
    uint64_t base = 0;
    size_t header_bytes = 0;
    // The lowest and highest times of the events in its blocks, without events in open_.
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    int64_t ingested = INT64_MIN;
  };
  // A Piece is a range of events within an append.
  struct Piece {
    uint64_t bytes = 0;
    int64_t first = INT64_MAX;
    int64_t last = INT64_MIN;
    int64_t ingested = INT64_MIN;
  };
  struct Pending {
    std::string records;
    std::vector<Piece> pieces;  // of the records
    uint64_t batch = 0;
    std::optional<Result<void>> result;
  };

  // The bytes of one write: the appends of a group that are not repetitions.
  struct GroupWrite {
    struct Append {
      const Pending* pending;
      uint64_t end;
      uint64_t last_batch;
    };
    uint64_t position = 0;
    uint64_t last_batch = 0;
    std::string bytes = {};
    std::vector<Append> appends = {};
  };

  std::string path(uint64_t segment) const;
  std::string index_path(uint64_t segment) const;

  Result<void> load_locked() REQUIRES(mutex_);
  // Syncs the last segment: the appends that were found in it may not have been synced, and are
  // returned to readers from now on.
  Result<void> sync_found() REQUIRES(mutex_);
  // Returns false if the segment does not exist.
  Result<bool> load_segment(uint64_t number) REQUIRES(mutex_);
  // Returns nullopt if the header is incomplete; the file was then renamed.
  Result<std::optional<Segment>> read_header(const Descriptor& file, uint64_t number) const
      REQUIRES(mutex_);
  Result<void> load_index(const Segment& segment, uint64_t file_bytes) REQUIRES(mutex_);
  // Scans the segment from end(). Returns the offset after the last complete append.
  Result<uint64_t> scan_rest(const Descriptor& file, const Segment& segment, uint64_t file_bytes)
      REQUIRES(mutex_);
  // Returns whether the index ends within an append that is incomplete.
  Result<bool> index_is_torn(const Descriptor& file, const Segment& segment) const REQUIRES(mutex_);
  // Removes the index and the blocks of the last segment, so that all of it is scanned.
  Result<void> forget_index(const Segment& segment) REQUIRES(mutex_);
  // Adds the complete appends in `bytes`, which begin at end(), to the blocks.
  void scan(const std::string& bytes) REQUIRES(mutex_);
  // Adds an event to the pieces of an append.
  void add_event(std::vector<Piece>& pieces, uint64_t bytes, int64_t at, int64_t ingested) const;
  // Adds a complete append to the blocks: its pieces, and its commit record, which ends at `end`.
  void add_append(const std::vector<Piece>& pieces, uint64_t end, uint64_t last_batch)
      REQUIRES(mutex_);
  void add_block(const Block& block) REQUIRES(mutex_);
  void close_block() REQUIRES(mutex_);
  void write_index() REQUIRES(mutex_);
  Span span_of(const Block& block) const REQUIRES(mutex_);
  // Returns the position after the segment with this index.
  uint64_t segment_end(size_t index) const REQUIRES(mutex_);
  uint64_t begin() const REQUIRES(mutex_) { return segments_.empty() ? 0 : segments_.front().base; }
  uint64_t end() const REQUIRES(mutex_) { return open_.end; }

  Result<LogPage> read_forward(const ReadQuery& query, uint64_t position, uint64_t stream_end);
  Result<LogPage> read_backward(const ReadQuery& query, uint64_t position, uint64_t stream_begin);

  // Writes the pending appends and sets their results. Releases the mutex while it writes.
  void lead() REQUIRES(mutex_);
  // Removes the appends of the next write from waiting_.
  std::vector<Pending*> take_group() REQUIRES(mutex_);
  GroupWrite encode(const std::vector<Pending*>& group) const REQUIRES(mutex_);
  Result<void> write_group(const GroupWrite& group) REQUIRES(mutex_);
  Result<void> write(const Segment& segment, bool is_new, uint64_t position,
                     const std::string& bytes);

  const std::string directory_;
  const uint64_t id_;
  const StreamKey key_;
  const LogSettings& settings_;
  Catalogue& catalogue_;

  Mutex mutex_;
  ConditionVariable changed_;
  bool loaded_ GUARDED_BY(mutex_) = false;
  bool open_in_catalogue_ GUARDED_BY(mutex_);
  uint64_t first_segment_ GUARDED_BY(mutex_);
  std::deque<Segment> segments_ GUARDED_BY(mutex_);
  std::deque<Block> blocks_ GUARDED_BY(mutex_);  // without gaps
  Block open_ GUARDED_BY(mutex_);                // the events after them, shorter than a block
  // the index files contain the blocks before this position
  uint64_t indexed_to_ GUARDED_BY(mutex_) = 0;
  uint64_t last_batch_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> broken_ GUARDED_BY(mutex_);   // the error of a write that was not undone
  std::deque<Pending*> waiting_ GUARDED_BY(mutex_);  // at most one per appending thread
  bool leading_ GUARDED_BY(mutex_) = false;
};

}  // namespace trainyard::observe
