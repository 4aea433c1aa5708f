#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "ledger/job_reader.hpp"
#include "ledger/ledger.hpp"
#include "ledger/set_aside.hpp"
#include "ledger/sql_query.hpp"
#include "ledger/tables.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/file_watch.hpp"

namespace trainyard::ledger {
namespace {

using sqlite::Connection;
using sqlite::Statement;

// Binds the parameters of a query, in order.
void bind_all(Statement& rows, const SqlQuery& sql_query) {
  for (const auto& parameter : sql_query.parameters)
    std::visit([&](const auto& value) { rows.bind(value); }, parameter);
}

class SqliteLedger final : public Ledger {
 public:
  static Result<std::unique_ptr<Ledger>> open(const std::string& path, uint64_t commands_max,
                                              FileFaults* faults, const ResourceCheck& check) {
    auto ledger = std::make_unique<SqliteLedger>(path, commands_max, faults);
    TRY(ledger->prepare(check).in("opening the ledger " + path));
    return std::unique_ptr<Ledger>(std::move(ledger));
  }

  SqliteLedger(std::string path, uint64_t commands_max, FileFaults* faults)
      : path_(std::move(path)),
        in_memory_(path_ == ":memory:"),
        commands_max_(commands_max),
        watch_(faults) {}
  ~SqliteLedger() override {
    if (failure().empty()) return;
    if (writer_) writer_->leave_log();
    for (const auto& reader : idle_readers_) reader->leave_log();
  }

  Result<void> commit(const Batch& batch) override {
    if (!in_memory_) return write_and_sync(batch);
    const MutexLock lock(mutex_);  // readers use the same connection
    return write_and_sync(batch);
  }

  Result<void> write_and_sync(const Batch& batch) {
    if (const auto failed = failure(); !failed.empty()) return unavailable(failed);
    TRY(writer_->run("BEGIN IMMEDIATE"));
    const auto written = write(batch);
    const auto done = written ? writer_->run("COMMIT") : written;
    if (!done) {
      // This fails only if SQLite has rolled back by itself (as on a full disk).
      const auto rolled_back = writer_->run("ROLLBACK");
      static_cast<void>(rolled_back);
      if (const auto failed = failure(); !failed.empty()) return unavailable(failed);
      return done;
    }
    // SQLite does not report a checkpoint whose sync failed; what this commit wrote is in the log,
    // but what earlier ones wrote may be in neither file.
    if (const auto failed = failure(); !failed.empty()) return unavailable(failed);
    last_sequence_ += batch.commands.size();
    for (const domain::Job& job : batch.jobs)
      last_job_number_ = std::max<domain::JobNumber>(last_job_number_, domain::last_number_of(job));
    return {};
  }

  std::string failure() override {
    const auto path = watch_.failed_sync();
    if (!path) return "";
    return "the ledger accepts no more commits until the server is restarted: syncing " + *path +
           " failed";
  }
  uint64_t last_sequence() override { return last_sequence_; }
  domain::JobNumber last_job_number() override { return last_job_number_; }

  Result<std::vector<domain::Job>> live_jobs() override {
    return read([](Connection& connection) -> Result<std::vector<domain::Job>> {
      Statement rows =
          TRY(connection.prepare(std::string(kJobColumns) + "WHERE live = 1 ORDER BY number"));
      return JobReader(connection).read_all(rows);
    });
  }

  Result<domain::Job> find_job(const domain::JobKey& key) override {
    return read([&](Connection& connection) -> Result<domain::Job> {
      Statement rows =
          TRY(connection.prepare(std::string(kJobColumns) + "WHERE region = ? AND name = ?"));
      rows.bind(key.region).bind(key.name);
      if (!TRY(rows.step())) return not_found("job " + key.name + " not found in " + key.region);
      return JobReader(connection).read(rows);
    });
  }

  Result<domain::Job> find_job(domain::JobNumber number) override {
    return read([&](Connection& connection) -> Result<domain::Job> {
      Statement rows = TRY(connection.prepare(std::string(kJobColumns) + "WHERE number = ?"));
      rows.bind(int64_t(number));
      if (!TRY(rows.step())) return not_found("job " + std::to_string(number) + " not found");
      return JobReader(connection).read(rows);
    });
  }

  Result<domain::Job> find_array_of(domain::JobNumber child) override {
    return read([&](Connection& connection) -> Result<domain::Job> {
      Statement rows =
          TRY(connection.prepare(std::string(kJobColumns) +
                                 "WHERE reserved > 0 AND number < ? ORDER BY number DESC LIMIT 1"));
      rows.bind(int64_t(child));
      if (!TRY(rows.step()))
        return not_found("child " + std::to_string(child) + " not found in any array");
      auto array = TRY(JobReader(connection).read(rows));
      if (domain::last_number_of(array) < child)
        return not_found("child " + std::to_string(child) + " not found in any array");
      return array;
    });
  }

  Result<std::vector<domain::Job>> children(const ChildQuery& query) override {
    const SqlQuery sql_query = build_sql(query);
    return read([&](Connection& connection) -> Result<std::vector<domain::Job>> {
      Statement rows = TRY(connection.prepare(sql_query.sql));
      bind_all(rows, sql_query);
      return JobReader(connection).read_all(rows);
    });
  }

  Result<domain::ChildCounts> count_children(domain::JobNumber array) override {
    return read([&](Connection& connection) -> Result<domain::ChildCounts> {
      Statement rows =
          TRY(connection.prepare("SELECT batch_status, count(*) FROM jobs WHERE parent > 0 AND "
                                 "parent = ? GROUP BY batch_status"));
      rows.bind(int64_t(array));
      domain::ChildCounts counts;
      while (TRY(rows.step())) {
        const int64_t status = rows.integer(0);
        if (status < 0 || status >= int64_t(counts.of.size()))
          return corrupt("ledger: a child has the status " + std::to_string(status));
        counts.of[size_t(status)] = uint32_t(rows.integer(1));
      }
      return counts;
    });
  }

  Result<JobPage> list_jobs(const JobQuery& query) override {
    if (query.jobs_max == 0) return invalid("jobs_max must be at least 1");
    const SqlQuery sql_query = TRY(build_sql(query, Dialect::sqlite));
    return read([&](Connection& connection) -> Result<JobPage> {
      Statement rows = TRY(connection.prepare_once(sql_query.sql));
      bind_all(rows, sql_query);
      return page_of(query, TRY(JobReader(connection).read_all(rows)));
    });
  }

  Result<std::vector<domain::Tag>> tags(const std::string& arn) override {
    return read([&](Connection& connection) -> Result<std::vector<domain::Tag>> {
      Statement rows = TRY(connection.prepare("SELECT tags FROM tags WHERE arn = ?"));
      rows.bind(arn);
      std::vector<domain::Tag> tags;
      if (!TRY(rows.step())) return tags;
      return tags_of(arn, rows.text(0));
    });
  }

  Result<std::vector<ResourceRecord>> resources() override {
    return read([](Connection& connection) -> Result<std::vector<ResourceRecord>> {
      Statement rows =
          TRY(connection.prepare(std::string(kResourceColumns) + "WHERE kind <> 'job_definition'"));
      std::vector<ResourceRecord> found;
      while (TRY(rows.step())) found.push_back(TRY(resource_of(rows)));
      return found;
    });
  }

  Result<domain::Records> records() override {
    return read([](Connection& connection) { return records_of(connection); });
  }

  Result<domain::Usages> usages() override {
    return read([](Connection& connection) -> Result<domain::Usages> {
      Statement rows =
          TRY(connection.prepare("SELECT region, queue, share, cpu_seconds, at, cpus FROM usages"));
      domain::Usages usages;
      while (TRY(rows.step()))
        usages[{{rows.text(0), rows.text(1)}, rows.text(2)}] = {
            rows.real(3), from_milliseconds(rows.integer(4)), rows.real(5)};
      return usages;
    });
  }

  Result<std::vector<ResourceRecord>> definitions(const DefinitionQuery& query) override {
    const SqlQuery sql_query = build_sql(query);
    return read([&](Connection& connection) -> Result<std::vector<ResourceRecord>> {
      Statement rows = TRY(connection.prepare_once(sql_query.sql));
      bind_all(rows, sql_query);
      std::vector<ResourceRecord> found;
      while (TRY(rows.step())) found.push_back(TRY(resource_of(rows)));
      return found;
    });
  }

  Result<void> replay(const std::function<Result<void>(const CommandRecord&)>& each) override {
    return read([&](Connection& connection) -> Result<void> {
      Statement rows = TRY(
          connection.prepare("SELECT sequence, at, kind, body FROM commands ORDER BY sequence"));
      while (TRY(rows.step())) {
        TRY(each(TRY(command_of(rows.integer(0), rows.integer(1), rows.text(2), rows.text(3)))));
      }
      return {};
    });
  }

 private:
  Result<void> prepare(const ResourceCheck& check) {
    writer_ = TRY(Connection::open(path_, sqlite::Access::read_and_write, watch_.name()));
    TRY(make_tables(*writer_, path_));
    TRY(set_aside_unreadable(*writer_, check).in("setting aside records that cannot be read"));
    last_sequence_ =
        uint64_t(TRY(writer_->integer("SELECT coalesce(max(sequence), 0) FROM commands")));
    // The numbers of children that were not created yet are assigned too.
    const int64_t last = TRY(writer_->integer("SELECT coalesce(max(number), 0) FROM jobs"));
    const int64_t reserved = TRY(writer_->integer(
        "SELECT coalesce((SELECT number + reserved FROM jobs WHERE reserved > 0 ORDER "
        "BY number DESC LIMIT 1), 0)"));
    const int64_t set_aside = TRY(last_number_set_aside(*writer_));
    last_job_number_ = uint64_t(std::max({last, reserved, set_aside}));
    return {};
  }

  Result<void> write(const Batch& batch) {
    uint64_t sequence = last_sequence_;
    for (const CommandRecord& command : batch.commands) {
      if (command.sequence != ++sequence)
        return conflict("ledger: command " + std::to_string(command.sequence) +
                        " is out of order: expected " + std::to_string(sequence));
      Statement insert = TRY(
          writer_->prepare("INSERT INTO commands (sequence, at, kind, body) VALUES (?, ?, ?, ?)"));
      insert.bind(int64_t(command.sequence))
          .bind(to_milliseconds(command.at))
          .bind(command.kind)
          .bind(dump(command.body));
      TRY(insert.run());
    }
    TRY(drop_old_commands(sequence));
    for (const domain::Job& job : batch.jobs) TRY(write_job(job));
    for (const auto& [arn, tags] : batch.tags) TRY(write_tags(arn, tags));
    for (const ResourceWrite& each : batch.resources) TRY(write_resource(each));
    for (const auto& [share, usage] : batch.usages) TRY(write_usage(share, usage));
    for (const auto& [key, record] : batch.records) TRY(write_record(key, record.get()));
    return {};
  }

  // Requires: `last` is the number of the last command.
  Result<void> drop_old_commands(uint64_t last) {
    if (last < commands_max_ + kCommandsDroppedAtOnce) return {};
    // If an earlier server left more, each commit drops a part of it.
    Statement oldest = TRY(writer_->prepare("SELECT min(sequence) FROM commands"));
    TRY(oldest.step());
    const auto first = uint64_t(oldest.integer(0));
    if (last - first + 1 < commands_max_ + kCommandsDroppedAtOnce) return {};
    Statement drop = TRY(writer_->prepare("DELETE FROM commands WHERE sequence < ?"));
    return drop.bind(int64_t(first + kCommandsDroppedAtOnce)).run();
  }

  Result<void> write_job(const domain::Job& job) {
    const std::string progress = dump(progress_json(job));
    const int64_t stage = job.spec.queue ? int64_t(domain::stage_of(job)) : kNoStage;
    Statement update = TRY(writer_->prepare(
        "UPDATE jobs SET state = ?, live = ?, status_order = ?, modified = ?, progress = ?, "
        "batch_status = ? WHERE number = ?"));
    update.bind(to_string(job.state)).bind(int64_t(job.live())).bind(status_order(job.state));
    update.bind(to_milliseconds(job.modified)).bind(progress).bind(stage).bind(int64_t(job.number));
    TRY(update.run());
    if (writer_->changes() == 1) return {};
    Statement insert = TRY(writer_->prepare(
        "INSERT INTO jobs (number, region, name, state, live, status_order, created, "
        "modified, spec, progress, queue, parent, reserved, batch_status) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    insert.bind(int64_t(job.number))
        .bind(job.key.region)
        .bind(job.key.name)
        .bind(to_string(job.state));
    insert.bind(int64_t(job.live()))
        .bind(status_order(job.state))
        .bind(to_milliseconds(job.created));
    insert.bind(to_milliseconds(job.modified));
    // A child has the spec of its array.
    insert.bind(job.parent != 0 ? std::string() : dump(to_json(job.spec))).bind(progress);
    insert.bind(job.spec.listed_queue()).bind(int64_t(job.parent));
    insert.bind(int64_t(domain::last_number_of(job) - job.number)).bind(stage);
    return insert.run();
  }

  Result<void> write_resource(const ResourceWrite& write) {
    const ResourceRecord& resource = write.resource;
    const domain::JobKey& key = resource.key;
    const int64_t revision = resource.revision;
    if (write.remove) {
      Statement gone = TRY(writer_->prepare(
          "DELETE FROM nouns WHERE kind = ? AND region = ? AND name = ? AND revision = ?"));
      return gone.bind(resource.kind).bind(key.region).bind(key.name).bind(revision).run();
    }
    Statement replace = TRY(writer_->prepare(
        "INSERT OR REPLACE INTO nouns (kind, region, name, revision, active, body) "
        "VALUES (?, ?, ?, ?, ?, ?)"));
    replace.bind(resource.kind).bind(key.region).bind(key.name).bind(revision);
    return replace.bind(int64_t(resource.active)).bind(dump(resource.body)).run();
  }

  Result<void> write_record(const domain::RecordKey& key, const domain::Record* record) {
    if (!record) {
      Statement gone = TRY(writer_->prepare("DELETE FROM records WHERE kind = ? AND name = ?"));
      return gone.bind(key.first).bind(key.second).run();
    }
    Statement replace = TRY(writer_->prepare(
        "INSERT OR REPLACE INTO records (kind, name, revision, body) VALUES (?, ?, ?, ?)"));
    replace.bind(key.first).bind(key.second).bind(int64_t(record->revision));
    return replace.bind(dump(record->document)).run();
  }

  Result<void> write_usage(const domain::ShareKey& share,
                           const std::optional<domain::Usage>& usage) {
    if (!usage) {
      Statement gone =
          TRY(writer_->prepare("DELETE FROM usages WHERE region = ? AND queue = ? AND share = ?"));
      return gone.bind(share.queue.region).bind(share.queue.name).bind(share.share).run();
    }
    Statement replace = TRY(writer_->prepare(
        "INSERT OR REPLACE INTO usages (region, queue, share, cpu_seconds, at, cpus) "
        "VALUES (?, ?, ?, ?, ?, ?)"));
    replace.bind(share.queue.region).bind(share.queue.name).bind(share.share);
    return replace.bind(usage->cpu_seconds)
        .bind(to_milliseconds(usage->at))
        .bind(usage->cpus)
        .run();
  }

  Result<void> write_tags(const std::string& arn, const std::vector<domain::Tag>& tags) {
    if (tags.empty()) {
      Statement gone = TRY(writer_->prepare("DELETE FROM tags WHERE arn = ?"));
      return gone.bind(arn).run();
    }
    Statement replace =
        TRY(writer_->prepare("INSERT OR REPLACE INTO tags (arn, tags) VALUES (?, ?)"));
    return replace.bind(arn).bind(text_of(tags)).run();
  }

  // Calls `body` with a free reader. A ledger in memory has only the writer: calls then take turns.
  template <class Body>
  auto read(Body body) -> decltype(body(std::declval<Connection&>())) {
    MutexLock lock(mutex_);
    if (in_memory_) return body(*writer_);
    reader_returned_.wait(
        lock, [&]() REQUIRES(mutex_) { return !idle_readers_.empty() || readers_ < kReadersMax; });
    std::unique_ptr<Connection> reader;
    if (!idle_readers_.empty()) {
      reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
    } else {
      auto opened = open_reader();
      if (!opened) return std::move(opened).error();
      reader = *std::move(opened);
      ++readers_;
    }
    lock.unlock();
    auto result = body(*reader);
    lock.lock();
    idle_readers_.push_back(std::move(reader));
    lock.unlock();
    reader_returned_.notify_one();
    return result;
  }

  Result<std::unique_ptr<Connection>> open_reader() {
    auto reader = TRY(Connection::open(path_, sqlite::Access::read_and_write, watch_.name()));
    TRY(reader->run("PRAGMA query_only = 1"));
    return reader;
  }

  const std::string path_;
  const bool in_memory_;
  const uint64_t commands_max_;
  sqlite::FileWatch watch_;             // before the connections that use it
  std::unique_ptr<Connection> writer_;  // used by commit(); in memory by the holder of mutex_
  std::atomic<uint64_t> last_sequence_ = 0;
  std::atomic<domain::JobNumber> last_job_number_ = 0;

  Mutex mutex_;
  ConditionVariable reader_returned_;
  std::vector<std::unique_ptr<Connection>> idle_readers_ GUARDED_BY(mutex_);
  size_t readers_ GUARDED_BY(mutex_) = 0;  // in use and idle
};

}  // namespace

Result<std::unique_ptr<Ledger>> open_sqlite(const std::string& path, uint64_t commands_max,
                                            FileFaults* faults, const ResourceCheck& check) {
  return SqliteLedger::open(path, commands_max, faults, check);
}

Result<domain::Records> read_records(const std::string& path) {
  const auto connection = TRY(Connection::open(path, sqlite::Access::read));
  return records_of(*connection);
}

}  // namespace trainyard::ledger
