#include "observe/stream.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "observe/disk.hpp"

namespace trainyard::observe {
namespace {

// Limit of a write that appends share. It limits the memory for a burst; larger writes would not
// save more syncs.
constexpr size_t kGroupBytesMax = 8 << 20;
// Limit of one append, with the records' headers. An agent's batch is a frame of at most 8 MiB,
// which grows to this size if its lines have one byte.
constexpr size_t kAppendBytesMax = 32 << 20;
// Bytes per read while searching for the end of a segment: several records of the greatest length.
constexpr uint64_t kScanBytes = 2 << 20;
// Pieces of an append in a block: a block exceeds its size by one piece and one record at most.
constexpr uint64_t kPiecesPerBlock = 4;

constexpr Block empty_block(uint64_t position, uint64_t last_batch) {
  return {.begin = position,
          .end = position,
          .first = INT64_MAX,
          .last = INT64_MIN,
          .ingested = INT64_MIN,
          .last_batch = last_batch};
}

// Adds the times of `part` to those of `whole`, each of which is a block, a segment or a piece.
template <class Whole, class Part>
void widen(Whole& whole, const Part& part) {
  whole.first = std::min(whole.first, part.first);
  whole.last = std::max(whole.last, part.last);
  whole.ingested = std::max(whole.ingested, part.ingested);
}

// Returns the length of a message's next piece. UTF-8 text is never cut before a continuation byte.
size_t piece_bytes(std::string_view message) {
  if (message.size() <= kMessageBytesMax) return message.size();
  size_t length = kMessageBytesMax;
  while (length > kMessageBytesMax - 4 && (uint8_t(message[length]) & 0xc0) == 0x80) --length;
  return length;
}

}  // namespace

TimeRange time_range(std::optional<Instant> from, std::optional<Instant> to) {
  TimeRange range;
  if (from) range.from = to_milliseconds(*from);
  if (to) range.to = to_milliseconds(*to);
  return range;
}

Stream::Stream(std::string directory, const StreamRow& row, const LogSettings& settings,
               Catalogue& catalogue)
    : directory_(directory + "/" + std::to_string(row.id / 1000)),
      id_(row.id),
      key_(row.key),
      settings_(settings),
      catalogue_(catalogue),
      open_in_catalogue_(row.open),
      first_segment_(row.first_segment),
      open_(empty_block(0, 0)) {}

std::string Stream::path(uint64_t segment) const {
  return directory_ + "/" + std::to_string(id_) + "-" + std::to_string(segment) + ".log";
}
std::string Stream::index_path(uint64_t segment) const {
  return directory_ + "/" + std::to_string(id_) + "-" + std::to_string(segment) + ".index";
}

bool Stream::open_in_catalogue() {
  MutexLock lock(mutex_);
  return open_in_catalogue_;
}

// -- opening --------------------------------------------------------------------------------------

Result<void> Stream::load_locked() {
  if (loaded_) return ok();
  segments_.clear();
  blocks_.clear();
  open_ = empty_block(0, 0);
  last_batch_ = 0;
  for (uint64_t number = first_segment_; TRY(load_segment(number)); ++number) continue;
  TRY(sync_found());
  loaded_ = true;
  return ok();
}

// A segment is followed by another one only after its last append was synced.
Result<void> Stream::sync_found() {
  if (!open_in_catalogue_ || segments_.empty()) return ok();
  const Descriptor last = TRY(Descriptor::open(path(segments_.back().number), O_RDWR));
  TRY(last.sync());
  return os::sync_directory(directory_);
}

Result<bool> Stream::load_segment(uint64_t number) {
  auto opened = Descriptor::open(path(number), open_in_catalogue_ ? O_RDWR : O_RDONLY);
  if (!opened && opened.error().kind == Kind::not_found) return false;
  const Descriptor file = TRY(std::move(opened));
  const uint64_t file_bytes = TRY(file.length());
  const auto found = TRY(read_header(file, number));
  if (!found) return false;
  const Segment& segment = *found;
  if (segments_.empty()) {
    open_ = empty_block(segment.base, 0);
  } else {
    close_block();
    write_index();
  }
  segments_.push_back(segment);
  indexed_to_ = segment.base;

  TRY(load_index(segment, file_bytes));
  uint64_t at = TRY(scan_rest(file, segment, file_bytes));
  if (TRY(index_is_torn(file, segment))) {
    TRY(forget_index(segment));
    at = TRY(scan_rest(file, segment, file_bytes));
  }
  if (end() == segment.base) {
    // The server crashed while it wrote the first append of this segment.
    segments_.pop_back();
    if (open_in_catalogue_) TRY(remove_file(path(number)));
    return false;
  }
  last_batch_ = open_.last_batch;
  if (at < file_bytes && open_in_catalogue_) {
    log(Level::info, "observe", "truncating a file after a crash",
        {{"file", path(number)}, {"bytes", std::to_string(file_bytes - at)}});
    TRY(file.truncate(at));
  }
  write_index();
  return true;
}

Result<std::optional<Stream::Segment>> Stream::read_header(const Descriptor& file,
                                                           uint64_t number) const {
  const auto header_bytes = TRY(file.read(0, kSegmentHeaderBytesMax));
  auto header = decode_segment_header(header_bytes);
  if (!header) {
    // The server crashed while creating the segment: nothing in it was acknowledged. It is renamed,
    // not removed: if the disk damaged it instead, an operator may need it.
    log(Level::warning, "observe", "renaming a segment without a complete header",
        {{"file", path(number)}, {"why", header.error().message}});
    TRY(rename_file(path(number), path(number) + ".torn"));
    return std::optional<Segment>();
  }
  if (!segments_.empty() && header->header.base != end())
    return corrupt(path(number) + " begins at " + std::to_string(header->header.base) +
                   ", but the previous segment ends at " + std::to_string(end()));
  if (header->header.stream != id_)
    return corrupt(path(number) + " belongs to stream " + std::to_string(header->header.stream));
  return std::optional(Segment{number, header->header.base, header->bytes});
}

// The index is a hint that is not synced: its valid entries are used, and the rest is read from the
// segment.
Result<void> Stream::load_index(const Segment& segment, uint64_t file_bytes) {
  const auto index = Descriptor::open(index_path(segment.number), O_RDONLY);
  if (!index) return ok();
  const auto entries = TRY(index->read(0, TRY(index->length())));
  for (size_t at = 0; at + kIndexEntryBytes <= entries.size(); at += kIndexEntryBytes) {
    const auto block = decode_index_entry(std::string_view(entries).substr(at));
    if (!block || block->begin != end() ||
        block->end - segment.base + segment.header_bytes > file_bytes)
      break;
    add_block(*block);
    indexed_to_ = block->end;
  }
  return ok();
}

Result<uint64_t> Stream::scan_rest(const Descriptor& file, const Segment& segment,
                                   uint64_t file_bytes) {
  uint64_t at = segment.header_bytes + (end() - segment.base);
  for (uint64_t window = kScanBytes; at < file_bytes;) {
    const uint64_t before = end();
    scan(TRY(file.read(at, window)));
    at += end() - before;
    if (end() != before) continue;
    if (window >= kAppendBytesMax + kScanBytes || at + window >= file_bytes) break;
    window = kAppendBytesMax + kScanBytes;
  }
  return at;
}

// The index is written after its appends are synced, so this is for disks that lose synced data: an
// append is whole or absent even then.
Result<bool> Stream::index_is_torn(const Descriptor& file, const Segment& segment) const {
  if (open_.begin != open_.end || end() == segment.base) return false;
  const uint64_t offset = segment.header_bytes + (end() - segment.base);
  const auto tail = TRY(file.read(offset - commit_record_bytes(), commit_record_bytes()));
  RecordReader reader(tail);
  const auto record = reader.next();
  return !record || !*record || !(*record)->last_batch;
}

Result<void> Stream::forget_index(const Segment& segment) {
  while (!blocks_.empty() && blocks_.back().begin >= segment.base) blocks_.pop_back();
  segments_.back() = segment;
  open_ = empty_block(segment.base, last_batch_);
  indexed_to_ = segment.base;
  return remove_file(index_path(segment.number));
}

void Stream::scan(const std::string& bytes) {
  RecordReader reader(bytes);
  const uint64_t base = end();
  std::vector<Piece> pieces;
  for (;;) {
    const auto record = reader.next();
    if (!record || !*record) return;
    if (const auto& event = (*record)->event) {
      add_event(pieces, (*record)->end - (*record)->begin, event->at, event->ingested);
    } else {
      add_append(pieces, base + (*record)->end, *(*record)->last_batch);
      pieces.clear();
    }
  }
}

void Stream::add_event(std::vector<Piece>& pieces, uint64_t bytes, int64_t at,
                       int64_t ingested) const {
  if (pieces.empty() || pieces.back().bytes >= settings_.block_bytes / kPiecesPerBlock)
    pieces.emplace_back();
  Piece& piece = pieces.back();
  piece.bytes += bytes;
  widen(piece, Piece{.first = at, .last = at, .ingested = ingested});
}

// A block that ends within the append has the batch before it. So a long append does not make its
// readers load all of it.
void Stream::add_append(const std::vector<Piece>& pieces, uint64_t end, uint64_t last_batch) {
  for (const Piece& piece : pieces) {
    open_.end += piece.bytes;
    widen(open_, piece);
    if (open_.end - open_.begin >= settings_.block_bytes) close_block();
  }
  open_.end = end;
  open_.last_batch = last_batch;
  if (open_.end - open_.begin >= settings_.block_bytes) close_block();
}

void Stream::add_block(const Block& block) {
  blocks_.push_back(block);
  widen(segments_.back(), block);
  open_ = empty_block(block.end, block.last_batch);
}

void Stream::close_block() {
  if (open_.begin != open_.end) add_block(Block(open_));
}

void Stream::write_index() {
  const Segment& segment = segments_.back();
  std::string entries;
  size_t before = 0;
  for (auto block = std::lower_bound(blocks_.begin(), blocks_.end(), segment.base,
                                     [](const Block&b, uint64_t p) { return b.begin < p; });
       block != blocks_.end(); ++block) {
    if (block->begin < indexed_to_) {
      before += kIndexEntryBytes;
    } else {
      encode_index_entry(entries, *block);
    }
  }
  if (entries.empty()) return;
  const auto written = [&]() -> Result<void> {
    const Descriptor index = TRY(Descriptor::open(index_path(segment.number), O_WRONLY | O_CREAT));
    return index.write(before, entries);
  }();
  // Without an index the stream only opens more slowly.
  if (!written)
    return log(Level::warning, "observe", "cannot write an index; the stream opens more slowly",
               {{"why", written.error().message}});
  indexed_to_ = blocks_.back().end;
}

// -- appending ------------------------------------------------------------------------------------

Result<void> Stream::append(const std::vector<LogEvent>& events, uint64_t batch, Instant now) {
  Pending mine{.batch = batch};
  for (const auto& event : events) {
    const int64_t at = to_milliseconds(event.at);
    const int64_t ingested = to_milliseconds(event.ingested == Instant{} ? now : event.ingested);
    std::string_view message = event.message;
    do {
      const size_t length = piece_bytes(message);
      encode_event(mine.records, {at, ingested, message.substr(0, length)});
      add_event(mine.pieces, event_record_bytes(length), at, ingested);
      message.remove_prefix(length);
    } while (!message.empty());
  }
  if (mine.records.empty() && batch == 0) return ok();
  if (mine.records.size() > kAppendBytesMax)
    return invalid("an append may have at most " + human_bytes(kAppendBytesMax) +
                   ", this one has " + human_bytes(mine.records.size()));

  MutexLock lock(mutex_);
  TRY(load_locked());
  waiting_.push_back(&mine);
  while (!mine.result) {
    if (leading_) {
      changed_.wait(lock);
    } else {
      lead();
    }
  }
  return *std::move(mine.result);
}

void Stream::lead() {
  leading_ = true;
  const std::vector<Pending*> group = take_group();
  const GroupWrite write = encode(group);
  Result<void> result = broken_ ? Result<void>(*broken_) : ok();
  if (result && !write.appends.empty()) result = write_group(write);
  for (Pending* each : group) each->result = result;
  leading_ = false;
  changed_.notify_all();
}

std::vector<Stream::Pending*> Stream::take_group() {
  std::vector<Pending*> group;
  for (size_t bytes = 0;
       !waiting_.empty() &&
       (group.empty() || bytes + waiting_.front()->records.size() <= kGroupBytesMax);) {
    bytes += waiting_.front()->records.size();
    group.push_back(waiting_.front());
    waiting_.pop_front();
  }
  return group;
}

// Each append has a commit record, so that after a crash it is whole or absent.
Stream::GroupWrite Stream::encode(const std::vector<Pending*>& group) const {
  GroupWrite write{.position = end(), .last_batch = last_batch_};
  for (const Pending* each : group) {
    if (each->batch != 0 && each->batch <= write.last_batch) continue;
    write.last_batch = std::max(write.last_batch, each->batch);
    write.bytes += each->records;
    encode_commit(write.bytes, write.last_batch);
    write.appends.push_back({each, write.position + write.bytes.size(), write.last_batch});
  }
  return write;
}

Result<void> Stream::write_group(const GroupWrite& group) {
  const bool is_new =
      segments_.empty() || group.position - segments_.back().base >= settings_.segment_bytes;
  Segment segment = is_new
                        ? Segment{segments_.empty() ? first_segment_ : segments_.back().number + 1,
                                  group.position, 0}
                        : segments_.back();
  std::string header;
  if (is_new) {
    header = encode_segment_header({id_, group.position, key_});
    segment.header_bytes = header.size();
  }
  const bool mark = !open_in_catalogue_;
  mutex_.unlock();
  Result<void> result = mark ? catalogue_.mark_open(id_) : ok();
  const bool marked = bool(result);
  if (result) result = write(segment, is_new, group.position, header + group.bytes);
  mutex_.lock();
  if (marked) open_in_catalogue_ = true;
  if (!result) return result;
  if (is_new) {
    if (!segments_.empty()) {
      close_block();
      write_index();
    }
    segments_.push_back(segment);
    indexed_to_ = segment.base;
  }
  for (const auto& each : group.appends)
    add_append(each.pending->pieces, each.end, each.last_batch);
  last_batch_ = group.last_batch;
  write_index();
  return ok();
}

Result<void> Stream::write(const Segment& segment, bool is_new, uint64_t position,
                           const std::string& bytes) {
  const std::string file_path = path(segment.number);
  const uint64_t offset = is_new ? 0 : segment.header_bytes + (position - segment.base);
  bool sync_failed = false;
  const auto synced = [&](Result<void> done) {
    // A sync may report a full disk as well. The write is then cut off, and may be tried again.
    sync_failed = sync_failed || (!done && done.error().kind != Kind::exhausted);
    return done;
  };
  const auto written = [&]() -> Result<void> {
    if (is_new) TRY(os::make_directories(directory_));
    const Descriptor file =
        TRY(Descriptor::open(file_path, is_new ? O_WRONLY | O_CREAT | O_TRUNC : O_WRONLY));
    TRY(file.write(offset, bytes));
    TRY(synced(file.sync()));
    if (is_new) {
      TRY(synced(os::sync_directory(directory_)));
      TRY(synced(os::sync_directory(directory_ + "/..")));
    }
    return ok();
  }();
  if (written) return ok();
  // Undo the partial write: events that were not acknowledged must not be found later. (A new
  // segment is removed; an existing one is truncated.)
  const auto undone = [&]() -> Result<void> {
    if (is_new) return remove_file(file_path);
    const Descriptor file = TRY(Descriptor::open(file_path, O_WRONLY));
    TRY(file.truncate(offset));
    return file.sync();
  }();
  // After a failed sync the kernel may mark pages as clean that are not on disk, so later syncs are
  // not reliable.
  if (!undone || sync_failed) {
    MutexLock lock(mutex_);
    broken_ = undone ? written.error() : undone.error();
    broken_->message.insert(0, "the stream accepts no more events until the server is restarted: ");
  }
  return written.error();
}

Result<uint64_t> Stream::last_batch() {
  MutexLock lock(mutex_);
  TRY(load_locked());
  return last_batch_;
}

Result<StreamSummary> Stream::summary() {
  MutexLock lock(mutex_);
  TRY(load_locked());
  Block all = open_;
  for (const Segment& segment : segments_) widen(all, segment);
  StreamSummary summary{.bytes = end() - begin()};
  if (all.first <= all.last) {
    summary.first_event = from_milliseconds(all.first);
    summary.last_event = from_milliseconds(all.last);
    summary.last_ingestion = from_milliseconds(all.ingested);
  }
  return summary;
}

// -- retention ------------------------------------------------------------------------------------

Result<void> Stream::retire(Instant before) {
  MutexLock lock(mutex_);
  TRY(load_locked());
  changed_.wait(lock, [&]() REQUIRES(mutex_) { return !leading_; });
  const uint64_t old_first = first_segment_;
  uint64_t keep = 0;  // the number of segments to remove
  while (keep + 1 < segments_.size() && segments_[keep].last < to_milliseconds(before)) ++keep;
  if (keep > 0) {
    const uint64_t first = segments_[keep].number;
    TRY(catalogue_.retire_segments(id_, first));
    first_segment_ = first;
    segments_.erase(segments_.begin(), segments_.begin() + ptrdiff_t(keep));
    while (!blocks_.empty() && blocks_.front().begin < segments_.front().base) blocks_.pop_front();
  }
  // Also removes segments that a crash left after the catalogue was updated.
  for (uint64_t number = first_segment_; number-- > 0;) {
    if (number < old_first && !Descriptor::open(path(number), O_RDONLY)) break;
    TRY(remove_file(path(number)));
    TRY(remove_file(index_path(number)));
  }
  return ok();
}

Result<void> Stream::remove_files() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() REQUIRES(mutex_) { return !leading_; });
  broken_ = not_found("log stream '" + key_.stream + "' does not exist", LogResource::stream);
  segments_.clear();
  blocks_.clear();
  open_ = empty_block(0, 0);
  loaded_ = true;
  for (uint64_t number = first_segment_;; ++number) {
    if (auto file = Descriptor::open(path(number), O_RDONLY); !file)
      return file.error().kind == Kind::not_found ? ok() : Result<void>(file.error());
    TRY(remove_file(path(number)));
    TRY(remove_file(index_path(number)));
  }
}

}  // namespace trainyard::observe
