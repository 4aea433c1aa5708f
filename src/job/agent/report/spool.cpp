#include "agent/report/spool.hpp"

#include <deque>
#include <map>
#include <set>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "wire/codec.hpp"

namespace trainyard::agent {
namespace {

constexpr char kStateFile[] = "state";
constexpr char kDataFilePrefix[] = "data-";
// The version of the other files' format, as a decimal number. Release 0.1.0 wrote no such file:
// its spools have version 1.
constexpr char kVersionFile[] = "version";
constexpr int64_t kSpoolVersion = 1;
constexpr size_t kVersionBytesMax = 20;
// The limit of the state file, which is never shortened: far above the some ten facts that an agent
// and its successors write.
constexpr size_t kStateBytesMax = 64 << 20;

uint64_t text_bytes(const std::vector<wire::LogLine>& lines) {
  uint64_t bytes = 0;
  for (const auto& line : lines) bytes += line.text.size() + 1;
  return bytes;
}

struct Dropped {
  uint64_t log_bytes = 0;
  uint64_t points = 0;
};

// One batch of the data track. Stored in a segment, or, if it reports dropped data, only here.
struct Batch {
  uint32_t segment = 0;  // 0: a notice
  uint64_t offset = 0;
  uint32_t bytes = 0;   // of the payload
  uint64_t number = 0;  // 0: not yet taken
  Dropped content;      // of a notice: what it reports; else: what it contains
};

class FileSpool final : public Spool {
 public:
  FileSpool(Files& files, std::string directory, Clock& clock, SpoolReason& why,
            const SpoolLimits& limits)
      : files_(files),
        directory_(std::move(directory)),
        clock_(clock),
        why_(why),
        limits_(limits) {}

  Result<void> open() {
    const MutexLock lock(mutex_);
    TRY(files_.make_directories(directory_, 0700));
    TRY(check_version());
    TRY(open_state());
    std::set<uint32_t> numbers;  // by number: names would put data-10 before data-9
    for (const auto& name : TRY(files_.list_directory(directory_))) {
      if (!name.starts_with(kDataFilePrefix)) continue;
      const auto number = parse_int(name.substr(sizeof kDataFilePrefix - 1));
      if (number && *number > 0 && *number < UINT32_MAX)
        numbers.insert(static_cast<uint32_t>(*number));
    }
    for (const uint32_t number : numbers) TRY(read_segment(number));
    return {};
  }

  Result<void> add_state(wire::StateFact fact) override {
    const MutexLock lock(mutex_);
    fact.number = ++last_state_;
    const std::string record = spool_record(wire::encode(fact));
    states_.push_back(std::move(fact));
    return write_state(record);
  }

  void add_logs(std::vector<wire::LogLine> lines) override {
    if (lines.empty()) return;
    const Dropped content{text_bytes(lines), 0};
    add_data(wire::encode(wire::LogBatch{0, std::move(lines)}), content);
  }

  void add_metrics(std::vector<wire::MetricPoint> points) override {
    if (points.empty()) return;
    const Dropped content{0, points.size()};
    add_data(wire::encode(wire::MetricBatch{0, std::move(points)}), content);
  }

  std::optional<wire::StateFact> take_state() override {
    const MutexLock lock(mutex_);
    if (next_state_ >= states_.size()) return {};
    return states_[next_state_++];
  }

  std::optional<std::string> take_data() override {
    const MutexLock lock(mutex_);
    if (next_batch_ >= batches_.size()) return {};
    Batch& batch = batches_[next_batch_];
    std::string payload = read_batch(batch);
    if (batch.number == 0) batch.number = ++last_data_;
    wire::set_number(payload, batch.number);
    in_flight_bytes_ += batch.bytes;
    ++next_batch_;
    return payload;
  }

  void rewind(uint64_t state_acknowledged, uint64_t data_acknowledged) override {
    const MutexLock lock(mutex_);
    acknowledge_states(state_acknowledged);
    acknowledge_batches(data_acknowledged);
    next_state_ = 0;
    next_batch_ = 0;
    in_flight_bytes_ = 0;
    // The successor of a killed agent continues with the numbers that the server has.
    last_data_ = std::max(last_data_, data_acknowledged);
    last_state_ = std::max(last_state_, state_acknowledged);
  }

  void acknowledge(wire::Track track, uint64_t number) override {
    const MutexLock lock(mutex_);
    if (track == wire::Track::state) {
      acknowledge_states(number);
    } else {
      acknowledge_batches(number);
    }
  }

  bool states_empty() const override {
    const MutexLock lock(mutex_);
    return states_.empty();
  }
  bool data_empty() const override {
    const MutexLock lock(mutex_);
    return batches_.empty();
  }
  uint64_t data_in_flight_bytes() const override {
    const MutexLock lock(mutex_);
    return in_flight_bytes_;
  }
  bool found_facts() const override { return found_facts_; }

 private:
  static constexpr unsigned kMode = 0600;
  struct Segment {
    uint64_t bytes = 0;
    size_t batches = 0;  // the number of batches_ in this segment
  };

  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  std::string segment_path(uint32_t segment) const {
    return path_of(kDataFilePrefix + std::to_string(segment));
  }

  Result<void> check_version() {
    const std::string path = path_of(kVersionFile);
    if (!files_.exists(path)) return files_.write(path, std::to_string(kSpoolVersion) + "\n", 0600);
    const std::string text = TRY(files_.read(path, kVersionBytesMax));
    const auto version = parse_int(std::string_view(text).substr(0, text.find('\n')));
    // Torn by a crash: its segment is read up to the last whole record.
    if (text.empty() || (version && *version == kSpoolVersion)) return ok();
    return conflict(path + " has version '" + shorten(text, kVersionBytesMax) +
                    "', and this agent reads version " + std::to_string(kSpoolVersion));
  }

  Result<void> open_state() REQUIRES(mutex_) {
    const std::string path = path_of(kStateFile);
    uint64_t whole = 0;
    if (files_.exists(path)) {
      const std::string bytes = TRY(files_.read(path, kStateBytesMax));
      const auto records = read_spool_records(bytes);
      whole = records.whole_bytes;
      for (const auto payload : records.payloads) {
        auto message = TRY(wire::decode(payload).in(path));
        if (std::holds_alternative<wire::Unknown>(message)) continue;  // of a later version
        auto* fact = std::get_if<wire::StateFact>(&message);
        if (fact == nullptr) return corrupt(path + ": contains a message that is not a state fact");
        last_state_ = std::max(last_state_, fact->number);
        states_.push_back(std::move(*fact));
      }
      found_facts_ = !states_.empty();
    }
    state_file_ = TRY(files_.open_append(path, kMode));
    TRY(state_file_->truncate(whole));
    state_bytes_ = whole;
    return ok();
  }

  // A partly written record would hide those behind it from the next agent, so it is cut off, at
  // the latest before the next record. A missing record would make the server refuse those behind
  // it, so it is written with the next one.
  Result<void> write_state(const std::string& record) REQUIRES(mutex_) {
    unwritten_ += record;
    if (state_torn_) TRY(state_file_->truncate(state_bytes_));
    state_torn_ = false;
    if (auto written = state_file_->append(unwritten_); !written) {
      state_torn_ = !state_file_->truncate(state_bytes_);
      return written;
    }
    state_bytes_ += unwritten_.size();
    unwritten_.clear();
    return ok();
  }

  Result<void> read_segment(uint32_t number) REQUIRES(mutex_) {
    const std::string bytes =
        TRY(files_.read(segment_path(number), limits_.segment_bytes * 2 + wire::kFrameBytesMax));
    Segment segment{bytes.size(), 0};
    uint64_t offset = 0;
    for (const auto payload : read_spool_records(bytes).payloads) {
      const auto message = wire::decode(payload);
      Batch batch{number, offset + kSpoolHeaderBytes, static_cast<uint32_t>(payload.size()), 0, {}};
      offset += kSpoolHeaderBytes + payload.size();
      if (!message) continue;
      if (const auto* logs = std::get_if<wire::LogBatch>(&*message))
        batch.content.log_bytes = text_bytes(logs->lines);
      if (const auto* metrics = std::get_if<wire::MetricBatch>(&*message))
        batch.content.points = metrics->points.size();
      if (batch.content.log_bytes == 0 && batch.content.points == 0) continue;
      batches_.push_back(batch);
      ++segment.batches;
    }
    last_segment_ = std::max(last_segment_, number);
    data_bytes_ += segment.bytes;
    segments_[number] = segment;
    return {};
  }

  void add_data(const std::string& payload, Dropped content) {
    const MutexLock lock(mutex_);
    // The job decides the size with what it writes, so it is checked here, and not asserted below.
    const auto written = payload.size() <= wire::kFrameBytesMax
                             ? write_data(payload)
                             : Result<Batch>(exhausted("a batch of " + human_bytes(payload.size()) +
                                                       " does not fit a frame"));
    if (!written) {
      log(Level::warning, "agent", "cannot spool a batch of data",
          {{"error", written.error().message}});
      note_dropped(batches_.size(), content);
      return;
    }
    Batch batch = *written;
    batch.content = content;
    batches_.push_back(batch);
    ++segments_[batch.segment].batches;
    while ((data_bytes_ > limits_.data_bytes_max || batches_.size() > limits_.batches_max) &&
           drop_oldest()) {
    }
  }

  Result<Batch> write_data(const std::string& payload) REQUIRES(mutex_) {
    if (!data_file_ || segments_[last_segment_].bytes >= limits_.segment_bytes) {
      data_file_.reset();
      const uint32_t number = ++last_segment_;
      remove_segment_when_empty(number - 1);  // it was kept while it was written
      data_file_ = TRY(files_.open_append(segment_path(number), kMode));
      segments_[number] = {};
    }
    Segment& segment = segments_[last_segment_];
    const std::string record = spool_record(payload);
    const uint64_t offset = segment.bytes;
    if (auto written = data_file_->append(record); !written) {
      // A partly written record must not stay before the next one.
      if (!data_file_->truncate(offset)) data_file_.reset();
      return std::move(written).error();
    }
    segment.bytes += record.size();
    data_bytes_ += record.size();
    return Batch{
        last_segment_, offset + kSpoolHeaderBytes, static_cast<uint32_t>(payload.size()), 0, {}};
  }

  // Drops the oldest segment of which no batch was sent. False when there is none.
  bool drop_oldest() REQUIRES(mutex_) {
    size_t first = 0;
    while (first < batches_.size() && (batches_[first].number != 0 || batches_[first].segment == 0))
      ++first;
    // A segment with sent batches stays; so does the one being written.
    uint32_t sent_from = 0;
    for (size_t i = 0; i < first; ++i) sent_from = std::max(sent_from, batches_[i].segment);
    while (first < batches_.size() &&
           (batches_[first].segment <= sent_from || batches_[first].number != 0))
      ++first;
    if (first >= batches_.size() || batches_[first].segment == last_segment_) return false;
    const uint32_t segment = batches_[first].segment;
    Dropped dropped;
    size_t end = first;
    for (; end < batches_.size() && batches_[end].segment == segment; ++end) {
      dropped.log_bytes += batches_[end].content.log_bytes;
      dropped.points += batches_[end].content.points;
    }
    batches_.erase(batches_.begin() + static_cast<ptrdiff_t>(first),
                   batches_.begin() + static_cast<ptrdiff_t>(end));
    segments_[segment].batches = 0;
    remove_segment_when_empty(segment);
    note_dropped(first, dropped);
    return true;
  }

  // Inserts a notice at `position`, or adds to the one before it.
  void note_dropped(size_t position, Dropped dropped) REQUIRES(mutex_) {
    if (position > 0 && batches_[position - 1].segment == 0 && batches_[position - 1].number == 0) {
      batches_[position - 1].content.log_bytes += dropped.log_bytes;
      batches_[position - 1].content.points += dropped.points;
      return;
    }
    Batch notice;
    notice.content = dropped;
    batches_.insert(batches_.begin() + static_cast<ptrdiff_t>(position), notice);
  }

  std::string notice(const Batch& batch) REQUIRES(mutex_) {
    std::string text =
        "trainyard: " + trainyard::counted(uint64_t(batch.content.log_bytes), "byte") + " of log";
    if (batch.content.points > 0)
      text += " and " + trainyard::counted(uint64_t(batch.content.points), "metric point");
    text += " were dropped here " + why_.reason();
    return wire::encode(wire::LogBatch{0, {{clock_.now(), std::move(text)}}});
  }

  std::string read_batch(const Batch& batch) REQUIRES(mutex_) {
    if (batch.segment == 0) return notice(batch);
    const std::string path = segment_path(batch.segment);
    const auto record =
        files_.read_at(path, batch.offset - kSpoolHeaderBytes, kSpoolHeaderBytes + batch.bytes);
    if (record && read_spool_records(*record).payloads.size() == 1)
      return record->substr(kSpoolHeaderBytes);
    log(Level::error, "agent", "cannot read a spooled batch", {{"file", path}});
    return notice(batch);
  }

  void acknowledge_states(uint64_t number) REQUIRES(mutex_) {
    while (!states_.empty() && states_.front().number <= number) {
      states_.pop_front();
      if (next_state_ > 0) --next_state_;
    }
  }

  void acknowledge_batches(uint64_t number) REQUIRES(mutex_) {
    while (!batches_.empty() && batches_.front().number != 0 && batches_.front().number <= number) {
      const Batch batch = batches_.front();
      batches_.pop_front();
      if (next_batch_ > 0) {
        --next_batch_;
        in_flight_bytes_ -= std::min<uint64_t>(in_flight_bytes_, batch.bytes);
      }
      if (batch.segment == 0) continue;
      --segments_[batch.segment].batches;
      remove_segment_when_empty(batch.segment);
    }
  }

  void remove_segment_when_empty(uint32_t number) REQUIRES(mutex_) {
    const auto segment = segments_.find(number);
    if (segment == segments_.end() || segment->second.batches > 0 || number == last_segment_)
      return;
    data_bytes_ -= segment->second.bytes;
    segments_.erase(segment);
    (void)files_.remove(segment_path(number));
  }

  Files& files_;
  const std::string directory_;
  Clock& clock_;
  SpoolReason& why_;
  const SpoolLimits limits_;
  bool found_facts_ = false;  // set by open() only

  mutable Mutex mutex_;
  std::unique_ptr<AppendFile> state_file_ GUARDED_BY(mutex_);
  uint64_t state_bytes_ GUARDED_BY(mutex_) = 0;            // of whole records in it
  bool state_torn_ GUARDED_BY(mutex_) = false;             // a partial record stands behind them
  std::string unwritten_ GUARDED_BY(mutex_);               // later records, still to be written
  std::deque<wire::StateFact> states_ GUARDED_BY(mutex_);  // not acknowledged, in order
  size_t next_state_ GUARDED_BY(mutex_) = 0;               // into states_: the first not taken
  uint64_t last_state_ GUARDED_BY(mutex_) = 0;

  std::unique_ptr<AppendFile> data_file_ GUARDED_BY(mutex_);  // of segment last_segment_
  std::deque<Batch> batches_ GUARDED_BY(mutex_);  // not acknowledged, in order; numbered ones first
  size_t next_batch_ GUARDED_BY(mutex_) = 0;      // into batches_: the first not taken
  uint64_t last_data_ GUARDED_BY(mutex_) = 0;
  uint64_t in_flight_bytes_ GUARDED_BY(mutex_) = 0;
  std::map<uint32_t, Segment> segments_ GUARDED_BY(mutex_);
  uint32_t last_segment_ GUARDED_BY(mutex_) = 0;
  uint64_t data_bytes_ GUARDED_BY(mutex_) = 0;  // of all segments
};

}  // namespace

Result<std::unique_ptr<Spool>> open_spool(Files& files, const std::string& directory, Clock& clock,
                                          SpoolReason& why, const SpoolLimits& limits) {
  auto spool = std::make_unique<FileSpool>(files, directory, clock, why, limits);
  TRY(spool->open().in("opening the spool"));
  return std::unique_ptr<Spool>(std::move(spool));
}

}  // namespace trainyard::agent
