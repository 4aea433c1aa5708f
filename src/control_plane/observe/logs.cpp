#include "observe/logs.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "observe/catalogue.hpp"
#include "observe/disk.hpp"
#include "observe/filter_run.hpp"
#include "observe/stream.hpp"
#include "observe/watched_logs.hpp"

namespace trainyard::observe {
namespace {

constexpr size_t kNameBytesMax = 4 * 512;  // 512 characters of UTF-8
constexpr Duration kSweepInterval = 60s;   // between searches for idle streams
static_assert(3 * kNameBytesMax < kSegmentHeaderBytesMax);

Result<void> check_name(std::string_view what, const std::string& name) {
  if (name.empty()) return invalid("the name of a " + std::string(what) + " must not be empty");
  if (name.size() > kNameBytesMax)
    return invalid("the name of a " + std::string(what) +
                   " is too long: " + std::to_string(name.size()) + " bytes");
  return ok();
}

Result<void> check_key(const StreamKey& key) {
  TRY(check_name("region", key.region));
  TRY(check_name("log group", key.group));
  return check_name("log stream", key.stream);
}

class LogDirectory final : public Logs {
 public:
  LogDirectory(std::string segments, std::unique_ptr<Catalogue> catalogue, Clock& clock,
               const LogSettings& settings)
      : segments_(std::move(segments)),
        catalogue_(std::move(catalogue)),
        clock_(clock),
        settings_(settings) {}

  ~LogDirectory() override {
    MutexLock lock(mutex_);
    if (auto closed = close_locked([](const Entry&) { return true; }); !closed)
      log(Level::warning, "observe", "cannot close the logs; the next start reads more files",
          {{"why", closed.error().message}});
  }

  // Stores the summaries of streams that a crash left open.
  Result<void> recover() {
    std::vector<Catalogue::Closed> closed;
    for (const auto& row : TRY(catalogue_->open_streams())) {
      Stream stream(segments_, row, settings_, *catalogue_);
      auto summary = stream.summary();
      if (!summary) {
        // One bad file must not prevent the start. The stream stays open in the catalogue, and
        // reads of it return the error.
        log(Level::error, "observe", "cannot read a log stream",
            {{"stream", row.key.stream}, {"why", summary.error().message}});
        continue;
      }
      closed.push_back({row.id, *summary});
    }
    return catalogue_->close(closed);
  }

  Result<void> create_group(const std::string& region, const std::string& group,
                            const LogGroupSettings& settings) override {
    TRY(check_name("region", region));
    TRY(check_name("log group", group));
    return catalogue_->create_group(region, group, clock_.now(), settings);
  }

  Result<LogGroupInfo> group(const std::string& region, const std::string& group) override {
    return catalogue_->group(region, group);
  }

  Result<void> change_group(const std::string& region, const std::string& group,
                            const ChangeGroup& change) override {
    return catalogue_->change_group(region, group, change);
  }

  LogDefinitions& definitions() override { return catalogue_->definitions(); }

  Result<void> delete_group(const std::string& region, const std::string& group) override {
    const auto removed = TRY(catalogue_->delete_group(region, group));
    for (const StreamRow& row : removed) TRY(discard(row));
    return ok();
  }

  Result<void> delete_stream(const StreamKey& key) override {
    const auto row = TRY(catalogue_->find(key));
    TRY(catalogue_->remove({row.id}));
    return discard(row);
  }

  Result<void> create_stream(const StreamKey& key) override {
    TRY(check_key(key));
    return catalogue_->create_stream(key, clock_.now());
  }

  Result<void> ensure_stream(const StreamKey& key) override { return ensure_streams({key}); }

  Result<void> ensure_streams(const std::vector<StreamKey>& keys) override {
    std::vector<StreamKey> unknown;
    for (const auto& key : keys) {
      TRY(check_key(key));
      if (!find_open(key)) unknown.push_back(key);
    }
    return catalogue_->ensure_streams(unknown, clock_.now());
  }

  Result<void> append(const StreamKey& key, const std::vector<LogEvent>& events,
                      uint64_t batch) override {
    if (!events.empty())
      TRY(settings_.check_disk_space());  // the number of an empty batch is stored in any case
    const auto to = TRY(stream(key));
    // An agent repeats a batch that was stored already if it did not see the acknowledgement.
    const bool repeated = settings_.appended && batch != 0 && batch <= TRY(to->last_batch());
    TRY(to->append(events, batch, clock_.now()));
    if (settings_.appended && !events.empty() && !repeated) settings_.appended(key, events);
    return ok();
  }

  Result<uint64_t> stored_bytes(const StreamKey& key) override {
    return TRY(TRY(stream(key))->summary()).bytes;
  }

  Result<uint64_t> last_batch(const StreamKey& key) override {
    return TRY(stream(key))->last_batch();
  }

  Result<LogPage> read(const StreamKey& key, const ReadQuery& query) override {
    return TRY(stream(key))->read(query);
  }

  Result<FilterPage> filter(const std::string& region, const std::string& group,
                            const FilterQuery& query) override {
    std::vector<StreamRow> rows;
    if (query.streams.empty()) {
      rows = TRY(catalogue_->streams(region, group, query.stream_prefix));
    } else {
      // Found by name: a group may have many more streams.
      for (const auto& name : std::set(query.streams.begin(), query.streams.end()))
        rows.push_back(TRY(catalogue_->find({region, group, name})));
    }
    return run_filter(TRY(sources_of(rows)), query, settings_);
  }

  Result<std::unique_ptr<LogScan>> scan(const std::string& region, const std::string& group,
                                        const ScanQuery& query) override {
    auto sources = TRY(sources_of(TRY(catalogue_->streams(region, group, ""))));
    return make_scan(std::move(sources), query, settings_);
  }

  Result<std::vector<LogStreamInfo>> streams(const std::string& region, const std::string& group,
                                             const std::string& prefix) override {
    std::vector<LogStreamInfo> infos;
    for (auto& row : TRY(catalogue_->streams(region, group, prefix))) {
      row.summary = TRY(summary_of(row));
      infos.push_back({.name = std::move(row.key.stream),
                       .created = row.created,
                       .first_event = row.summary.first_event,
                       .last_event = row.summary.last_event,
                       .last_ingestion = row.summary.last_ingestion,
                       .stored_bytes = row.summary.bytes});
    }
    return infos;
  }

  Result<std::vector<LogGroupInfo>> groups(const std::string& region,
                                           const std::string& prefix) override {
    std::unordered_map<uint64_t, std::shared_ptr<Stream>> live;
    {
      MutexLock lock(mutex_);
      for (const auto& [key, entry] : open_) live.emplace(entry.stream->id(), entry.stream);
    }
    std::vector<LogGroupInfo> infos;
    for (auto& row : TRY(catalogue_->groups(region, prefix))) {
      for (const uint64_t id : row.open_streams)
        if (const auto found = live.find(id); found != live.end())
          row.info.stored_bytes += TRY(found->second->summary()).bytes;
      infos.push_back(std::move(row.info));
    }
    return infos;
  }

  Result<void> retire(Instant now) override {
    {
      MutexLock lock(mutex_);
      TRY(close_idle_locked());
    }
    std::map<std::pair<std::string, std::string>, Instant> own;  // by region and group
    Instant latest = settings_.retention ? now - *settings_.retention : Instant::min();
    for (const auto& each : TRY(catalogue_->retentions())) {
      const Instant before = now - std::chrono::days(each.days);
      own.emplace(std::pair(each.region, each.group), before);
      latest = std::max(latest, before);
    }
    if (latest == Instant::min()) return ok();
    // Unset: the stream's group keeps its events forever.
    const auto before_of = [&](const StreamKey& key) -> std::optional<Instant> {
      const auto found = own.find({key.region, key.group});
      if (found != own.end()) return found->second;
      if (!settings_.retention) return {};
      return now - *settings_.retention;
    };
    return retire_streams(latest, before_of);
  }

 private:
  using FindBefore = std::function<std::optional<Instant>(const StreamKey&)>;

  // `latest`: no result of `before_of` is later. A fault of one stream, such as a damaged file,
  // does not end the retention of others; the first one is returned.
  Result<void> retire_streams(Instant latest, const FindBefore& before_of) {
    Result<void> first = ok();
    const auto note = [&first](const StreamRow& row, const Result<void>& done) {
      if (!done && first) first = Result<void>(done.error()).in("log stream " + row.key.stream);
    };
    for (const auto& row : TRY(catalogue_->ended_before(latest))) {
      const auto before = before_of(row.key);
      if (!before || row.summary.last_event.value_or(row.created) >= *before) continue;
      {
        MutexLock lock(mutex_);
        if (open_.contains(row.key)) continue;  // in use: removed next time
        TRY(catalogue_->remove({row.id}));
      }
      note(row, Stream(segments_, row, settings_, *catalogue_).remove_files());
    }
    for (const auto& row : TRY(catalogue_->started_before(latest))) {
      const auto before = before_of(row.key);
      if (!before || (row.open && !find_open(row.key))) continue;
      const auto found = stream(row.key);
      if (!found && found.error().kind == Kind::not_found) continue;
      note(row, found ? (*found)->retire(*before) : Result<void>(found.error()));
    }
    return first;
  }

  // Removes what is left of a stream that the catalogue has no longer. Calls in progress on it
  // fail.
  Result<void> discard(const StreamRow& row) {
    std::shared_ptr<Stream> live;
    {
      MutexLock lock(mutex_);
      if (const auto found = open_.find(row.key); found != open_.end()) {
        live = found->second.stream;
        open_.erase(found);
      }
    }
    if (live) return live->remove_files();
    return Stream(segments_, row, settings_, *catalogue_).remove_files();
  }

  struct Entry {
    // Shared with the calls in progress; the last owner destroys it. Only a stream without such
    // calls is closed.
    std::shared_ptr<Stream> stream;
    std::chrono::nanoseconds used{};
  };

  std::shared_ptr<Stream> find_open(const StreamKey& key) {
    MutexLock lock(mutex_);
    const auto found = open_.find(key);
    return found == open_.end() ? nullptr : found->second.stream;
  }

  Result<std::vector<FilterSource>> sources_of(const std::vector<StreamRow>& rows) {
    std::vector<FilterSource> sources;
    for (const StreamRow& row : rows) {
      const auto summary = TRY(summary_of(row));
      FilterSource source{.id = row.id,
                          .name = row.key.stream,
                          .first_event = summary.first_event,
                          .last_event = summary.last_event};
      source.open = [this, key = row.key, id = row.id]() -> Result<std::shared_ptr<Stream>> {
        auto opened = TRY(stream(key));
        // Another stream may have been created under the name of a deleted one.
        if (opened->id() != id)
          return not_found("log stream '" + key.stream + "' was deleted", LogResource::stream);
        return opened;
      };
      sources.push_back(std::move(source));
    }
    return sources;
  }

  // Returns the current summary; `row` may be out of date.
  Result<StreamSummary> summary_of(const StreamRow& row) {
    if (!row.open) return row.summary;
    if (const auto live = find_open(row.key)) return live->summary();
    // The stream was closed after the row was read, or nothing was written to it yet.
    const auto again = catalogue_->find(row.key);
    return again && !again->open ? again->summary : StreamSummary();
  }

  Result<std::shared_ptr<Stream>> stream(const StreamKey& key) {
    MutexLock lock(mutex_);
    const auto now = clock_.monotonic();
    if (now - swept_ > kSweepInterval || open_.size() >= settings_.streams_open_max)
      TRY(close_idle_locked());
    auto found = open_.find(key);
    if (found == open_.end()) {
      const auto row = TRY(catalogue_->find(key));
      found =
          open_
              .emplace(key, Entry{std::make_shared<Stream>(segments_, row, settings_, *catalogue_)})
              .first;
    }
    found->second.used = now;
    return found->second.stream;
  }

  Result<void> close_idle_locked() REQUIRES(mutex_) {
    const auto now = clock_.monotonic();
    swept_ = now;
    TRY(close_locked([&](const Entry& entry) { return now - entry.used > settings_.idle_time; }));
    if (open_.size() < settings_.streams_open_max) return ok();
    // Too many are open, so the least recently used half is closed. Streams in use stay, so the
    // number may exceed the limit by the number of calls in progress.
    std::vector<std::chrono::nanoseconds> used;
    for (const auto& [key, entry] : open_) used.push_back(entry.used);
    const auto middle = used.begin() + ptrdiff_t(used.size() / 2);
    std::nth_element(used.begin(), middle, used.end());
    return close_locked([limit = *middle](const Entry& entry) { return entry.used <= limit; });
  }

  template <class Which>
  Result<void> close_locked(const Which& which) REQUIRES(mutex_) {
    std::vector<Catalogue::Closed> closed;
    std::vector<StreamKey> keys;
    for (const auto& [key, entry] : open_) {
      if (entry.stream.use_count() > 1 || !which(entry)) continue;
      if (entry.stream->open_in_catalogue()) {
        auto summary = entry.stream->summary();
        if (!summary) continue;  // it stays open; the next start checks it
        closed.push_back({entry.stream->id(), *summary});
      }
      keys.push_back(key);
    }
    TRY(catalogue_->close(closed));
    for (const auto& key : keys) open_.erase(key);
    return ok();
  }

  const std::string segments_;
  const std::unique_ptr<Catalogue> catalogue_;
  Clock& clock_;
  const LogSettings settings_;
  Mutex mutex_;
  std::map<StreamKey, Entry> open_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds swept_ GUARDED_BY(mutex_){};
};

}  // namespace

Result<std::unique_ptr<Logs>> open_watched_logs(const std::string& directory, Clock& clock,
                                                const LogSettings& settings,
                                                const std::string& files) {
  const std::string segments = directory + "/segments";
  TRY(os::make_directories(segments));
  auto catalogue = TRY(Catalogue::open(directory + "/catalogue.sqlite", files));
  TRY(os::sync_directory(directory));
  auto logs = std::make_unique<LogDirectory>(segments, std::move(catalogue), clock, settings);
  TRY(logs->recover());
  return std::unique_ptr<Logs>(std::move(logs));
}

Result<std::unique_ptr<Logs>> open_logs(const std::string& directory, Clock& clock,
                                        const LogSettings& settings) {
  return open_watched_logs(directory, clock, settings, "");
}

}  // namespace trainyard::observe
