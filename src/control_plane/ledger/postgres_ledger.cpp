#include "ledger/postgres_ledger.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "ledger/on_postgres/reading.hpp"
#include "ledger/on_postgres/set_aside.hpp"
#include "ledger/on_postgres/tables.hpp"
#include "ledger/on_postgres/writes.hpp"
#include "ledger/set_aside.hpp"

namespace trainyard::ledger {
namespace {

// The tries of a commit whose connection is lost, before it fails: a restart of the database server
// takes longer than one try.
constexpr int kCommitTriesMax = 3;
constexpr int kReadTriesMax = 2;
// Rows of the log that are read at once: some megabytes, in some milliseconds.
constexpr int64_t kReplayPageRows = 1'000;

const std::string kJobs(kJobColumns);

class PostgresLedger final : public Ledger {
 public:
  PostgresLedger(PostgresSettings settings, uint64_t fencing, uint64_t commands_max)
      : settings_(std::move(settings)), fencing_(fencing), commands_max_(commands_max) {}

  Result<void> prepare(const ResourceCheck& check) {
    writer_ = TRY(on_postgres::connect(settings_, on_postgres::writer_session(fencing_)));
    if (!TRY(on_postgres::has_tables(*writer_))) return not_found("its tables do not exist");
    if (TRY(writer_->run({"SHOW fsync"})).text(0, 0) != "on")
      log(Level::warning, "ledger",
          "the PostgreSQL server runs without fsync: a crash of its machine loses jobs that were "
          "acknowledged");
    if (TRY(writer_->run(on_postgres::check_fencing(fencing_))).count() != 1)
      return conflict(on_postgres::kFenced);
    TRY(on_postgres::set_aside_unreadable(*writer_, fencing_, check)
            .in("setting aside records that cannot be read"));
    const auto number = [&](const std::string& sql) -> Result<int64_t> {
      return TRY(writer_->run({sql})).integer(0, 0);
    };
    last_sequence_ = uint64_t(TRY(number("SELECT coalesce(max(sequence), 0) FROM commands")));
    first_sequence_ = uint64_t(TRY(number("SELECT coalesce(min(sequence), 1) FROM commands")));
    // The numbers of children that were not created yet are assigned, too.
    const int64_t last = TRY(number("SELECT coalesce(max(number), 0) FROM jobs"));
    const int64_t reserved = TRY(number(
        "SELECT coalesce((SELECT number + reserved FROM jobs WHERE reserved > 0 ORDER BY number "
        "DESC LIMIT 1), 0)"));
    const int64_t set_aside = TRY(on_postgres::last_number_set_aside(*writer_));
    last_job_number_ = uint64_t(std::max({last, reserved, set_aside}));
    return {};
  }

  Result<void> commit(const Batch& batch) override;
  std::string failure() override {
    const MutexLock lock(mutex_);
    return failure_;
  }
  uint64_t last_sequence() override { return last_sequence_; }
  domain::JobNumber last_job_number() override { return last_job_number_; }

  Result<std::vector<domain::Job>> live_jobs() override {
    return read([](postgres::Connection& connection) -> Result<std::vector<domain::Job>> {
      return on_postgres::jobs_of(connection,
                                  TRY(connection.run({kJobs + "WHERE live = 1 ORDER BY number"})));
    });
  }

  Result<domain::Job> find_job(const domain::JobKey& key) override {
    return find({kJobs + "WHERE region = $1 AND name = $2", {key.region, key.name}},
                "job " + key.name + " not found in " + key.region);
  }

  Result<domain::Job> find_job(domain::JobNumber number) override {
    return find({kJobs + "WHERE number = $1", {int64_t(number)}},
                "job " + std::to_string(number) + " not found");
  }

  Result<domain::Job> find_array_of(domain::JobNumber child) override {
    const std::string absent = "child " + std::to_string(child) + " not found in any array";
    auto array =
        TRY(find({kJobs + "WHERE reserved > 0 AND number < $1 ORDER BY number DESC LIMIT 1",
                  {int64_t(child)}},
                 absent));
    if (domain::last_number_of(array) < child) return not_found(absent);
    return array;
  }

  Result<std::vector<domain::Job>> children(const ChildQuery& query) override {
    return read([&](postgres::Connection& connection) -> Result<std::vector<domain::Job>> {
      return on_postgres::jobs_of(connection,
                                  TRY(connection.run(on_postgres::query_of(build_sql(query)))));
    });
  }

  Result<domain::ChildCounts> count_children(domain::JobNumber array) override {
    return read([&](postgres::Connection& connection) -> Result<domain::ChildCounts> {
      const postgres::Rows rows =
          TRY(connection.run({"SELECT batch_status, count(*) FROM jobs WHERE parent > 0 AND parent "
                              "= $1 GROUP BY batch_status",
                              {int64_t(array)}}));
      domain::ChildCounts counts;
      for (size_t row = 0; row < rows.count(); ++row) {
        const int64_t status = rows.integer(row, 0);
        if (status < 0 || status >= int64_t(counts.of.size()))
          return corrupt("ledger: a child has the status " + std::to_string(status));
        counts.of[size_t(status)] = uint32_t(rows.integer(row, 1));
      }
      return counts;
    });
  }

  Result<JobPage> list_jobs(const JobQuery& query) override {
    if (query.jobs_max == 0) return invalid("jobs_max must be at least 1");
    const postgres::Query numbered =
        on_postgres::query_of(TRY(build_sql(query, Dialect::postgres)));
    return read([&](postgres::Connection& connection) -> Result<JobPage> {
      return page_of(query, on_postgres::jobs_of(connection, TRY(connection.run_once(numbered))));
    });
  }

  Result<std::vector<domain::Tag>> tags(const std::string& arn) override {
    return read([&](postgres::Connection& connection) -> Result<std::vector<domain::Tag>> {
      const postgres::Rows rows =
          TRY(connection.run({"SELECT tags FROM tags WHERE arn = $1", {arn}}));
      if (rows.count() == 0) return std::vector<domain::Tag>();
      return tags_of(arn, rows.text(0, 0));
    });
  }

  Result<std::vector<ResourceRecord>> resources() override {
    return read([](postgres::Connection& connection) -> Result<std::vector<ResourceRecord>> {
      return resources_of(TRY(connection.run({std::string(kResourceColumns) +
                                              "WHERE kind <> 'job_definition' ORDER BY kind, "
                                              "region, name"})));
    });
  }

  Result<domain::Records> records() override {
    return read(
        [](postgres::Connection& connection) { return on_postgres::records_of(connection); });
  }

  Result<domain::Usages> usages() override {
    return read([](postgres::Connection& connection) -> Result<domain::Usages> {
      const postgres::Rows rows =
          TRY(connection.run({"SELECT region, queue, share, cpu_seconds, at, cpus FROM usages"}));
      domain::Usages usages;
      for (size_t row = 0; row < rows.count(); ++row)
        usages[{{rows.text(row, 0), rows.text(row, 1)}, rows.text(row, 2)}] = {
            rows.real(row, 3), from_milliseconds(rows.integer(row, 4)), rows.real(row, 5)};
      return usages;
    });
  }

  Result<std::vector<ResourceRecord>> definitions(const DefinitionQuery& query) override {
    return read([&](postgres::Connection& connection) -> Result<std::vector<ResourceRecord>> {
      return resources_of(TRY(connection.run_once(on_postgres::query_of(build_sql(query)))));
    });
  }

  // Reads in pages, since the log may have some hundred megabytes.
  Result<void> replay(const std::function<Result<void>(const CommandRecord&)>& each) override {
    for (int64_t after = 0;;) {
      auto page = TRY(read([&](postgres::Connection& connection) -> Result<postgres::Rows> {
        return connection.run(
            {"SELECT sequence, at, kind, body FROM commands WHERE sequence > $1 "
             "ORDER BY sequence LIMIT $2",
             {after, kReplayPageRows}});
      }));
      for (size_t row = 0; row < page.count(); ++row) {
        after = page.integer(row, 0);
        TRY(each(
            TRY(command_of(after, page.integer(row, 1), page.text(row, 2), page.text(row, 3)))));
      }
      if (int64_t(page.count()) < kReplayPageRows) return {};
    }
  }

 private:
  // A commit whose connection was lost.
  struct Unresolved {
    uint64_t before, after;
    bool refused;  // it was already reported as failed
  };

  Result<void> check_sequence(const Batch& batch) const;
  Result<void> try_commit(const Batch& batch);
  Result<void> write(const Batch& batch);
  Result<AfterLoss> resolve();
  Result<uint64_t> durable_sequence();
  Error fail(std::string why);

  static Result<std::vector<ResourceRecord>> resources_of(const postgres::Rows& rows) {
    std::vector<ResourceRecord> found;
    found.reserve(rows.count());
    for (size_t row = 0; row < rows.count(); ++row)
      found.push_back(TRY(on_postgres::resource_at(rows, row)));
    return found;
  }

  Result<domain::Job> find(const postgres::Query& query, const std::string& absent) {
    return read([&](postgres::Connection& connection) -> Result<domain::Job> {
      const postgres::Rows rows = TRY(connection.run(query));
      if (rows.count() == 0) return not_found(absent);
      return on_postgres::job_reader(connection)
          .read(rows.text(0, 0), rows.text(0, 1), rows.integer(0, 2));
    });
  }

  // Calls `body` with a free reader, and again with a new one if the reader's connection is lost.
  template <class Body>
  auto read(Body body) -> decltype(body(std::declval<postgres::Connection&>())) {
    std::unique_ptr<postgres::Connection> reader = take_reader();
    for (int tries = 1;; ++tries) {
      auto result = read_once(body, reader);
      if (reader || tries == kReadTriesMax) {
        give_back(std::move(reader));
        return result;
      }
    }
  }

  // Resets a reader whose connection is lost.
  template <class Body>
  auto read_once(const Body& body, std::unique_ptr<postgres::Connection>& reader)
      -> decltype(body(*reader)) {
    if (!reader) reader = TRY(open_reader());
    auto result = body(*reader);
    if (reader->lost()) reader.reset();
    return result;
  }

  // Returns nullptr if the caller is to open a new reader.
  std::unique_ptr<postgres::Connection> take_reader() {
    MutexLock lock(mutex_);
    reader_returned_.wait(lock, [&]() REQUIRES(mutex_) { return readers_in_use_ < kReadersMax; });
    ++readers_in_use_;
    if (idle_readers_.empty()) return nullptr;
    auto reader = std::move(idle_readers_.back());
    idle_readers_.pop_back();
    return reader;
  }

  void give_back(std::unique_ptr<postgres::Connection> reader) {
    {
      const MutexLock lock(mutex_);
      --readers_in_use_;
      if (reader) idle_readers_.push_back(std::move(reader));
    }
    reader_returned_.notify_one();
  }

  Result<std::unique_ptr<postgres::Connection>> open_reader() const {
    auto reader = TRY(on_postgres::connect(settings_, "trainyard reader"));
    TRY(on_postgres::make_read_only(*reader));
    return reader;
  }

  const PostgresSettings settings_;
  const uint64_t fencing_;
  const uint64_t commands_max_;
  // Confined to the committing thread.
  std::unique_ptr<postgres::Connection> writer_;
  std::optional<Unresolved> unresolved_;
  uint64_t first_sequence_ = 1, next_first_sequence_ = 1;  // of the log; after the current commit
  bool commit_sent_ = false;                               // by the current try

  std::atomic<uint64_t> last_sequence_ = 0;
  std::atomic<domain::JobNumber> last_job_number_ = 0;

  Mutex mutex_;
  ConditionVariable reader_returned_;
  std::vector<std::unique_ptr<postgres::Connection>> idle_readers_ GUARDED_BY(mutex_);
  size_t readers_in_use_ GUARDED_BY(mutex_) = 0;
  std::string failure_ GUARDED_BY(mutex_);
};

Error PostgresLedger::fail(std::string why) {
  const MutexLock lock(mutex_);
  if (failure_.empty())
    failure_ = "the ledger accepts no more commits until the server is restarted: " + why;
  return unavailable(failure_);
}

Result<void> PostgresLedger::check_sequence(const Batch& batch) const {
  uint64_t sequence = last_sequence_;
  for (const CommandRecord& command : batch.commands)
    if (command.sequence != ++sequence)
      return conflict("ledger: command " + std::to_string(command.sequence) +
                      " is out of order: expected " + std::to_string(sequence));
  return {};
}

Result<void> PostgresLedger::commit(const Batch& batch) {
  if (const auto failed = failure(); !failed.empty()) return unavailable(failed);
  TRY(check_sequence(batch));
  const uint64_t before = last_sequence_, after = before + batch.commands.size();
  Result<void> done;
  bool durable = false;
  for (int tries = 0; tries < kCommitTriesMax && !durable; ++tries) {
    if (unresolved_ || !writer_ || writer_->lost()) {
      const auto outcome = resolve();
      if (!outcome && outcome.error().kind == Kind::conflict) return fail(outcome.error().message);
      done = outcome ? Result<void>() : Result<void>(outcome.error());
      if (!outcome) continue;
      durable = *outcome == AfterLoss::committed;
      if (durable) break;
    }
    done = try_commit(batch);
    if (done) break;
    if (!writer_->lost()) return done;
    unresolved_ = Unresolved{before, after, false};
    // A commit without commands changes no sequence number that would show its outcome.
    if (before == after && commit_sent_) return fail("the outcome of a commit is unknown");
  }
  if (!done) {
    if (unresolved_) unresolved_->refused = true;
    return done;
  }
  last_sequence_ = after;
  first_sequence_ = next_first_sequence_;
  for (const domain::Job& job : batch.jobs)
    last_job_number_ = std::max<domain::JobNumber>(last_job_number_, domain::last_number_of(job));
  return {};
}

// Commits once. If it fails, nothing has changed, unless the connection is lost.
Result<void> PostgresLedger::try_commit(const Batch& batch) {
  commit_sent_ = false;
  auto written = write(batch);
  if (written) {
    commit_sent_ = true;
    const auto done = writer_->run({"COMMIT"});
    if (done) return {};
    written = done.error();
  }
  if (!writer_->lost()) static_cast<void>(writer_->run({"ROLLBACK"}));
  // The statements were sent together: rows of a new writer may have caused the conflict before the
  // answer to check_fencing() was read.
  if (written.error().kind != Kind::conflict || writer_->lost()) return written;
  const auto held = writer_->run(on_postgres::check_fencing(fencing_));
  if (held && held->count() != 1) return fail(on_postgres::kFenced);
  return written;
}

Result<void> PostgresLedger::write(const Batch& batch) {
  on_postgres::Writes writes = on_postgres::writes_of(batch, last_job_number_);
  constexpr size_t kBefore = 2;
  std::vector<postgres::Query> statements{{"BEGIN"}, on_postgres::check_fencing(fencing_)};
  std::move(writes.statements.begin(), writes.statements.end(), std::back_inserter(statements));
  const uint64_t last = last_sequence_ + batch.commands.size();
  // If an earlier server left more, each commit drops a part of it.
  next_first_sequence_ = first_sequence_;
  if (last >= first_sequence_ + commands_max_ + kCommandsDroppedAtOnce - 1) {
    next_first_sequence_ += kCommandsDroppedAtOnce;
    statements.push_back(
        {"DELETE FROM commands WHERE sequence < $1", {int64_t(next_first_sequence_)}});
  }
  const std::vector<postgres::Rows> answers = TRY(writer_->run_together(statements));
  if (answers[1].count() != 1) return fail(on_postgres::kFenced);
  std::vector<postgres::Query> inserts;
  for (const auto& [index, job] : writes.updates)
    if (answers[kBefore + index].changed() == 0) inserts.push_back(on_postgres::insert_of(*job));
  if (!inserts.empty()) TRY(writer_->run_together(inserts));
  return {};
}

// Determines the outcome of the last commit over a new connection. Errors: conflict, if memory and
// database differ or another server is the writer; those of the connection.
Result<AfterLoss> PostgresLedger::resolve() {
  writer_.reset();
  const uint64_t found = TRY(durable_sequence());
  const Unresolved lost = unresolved_.value_or(Unresolved{last_sequence_, last_sequence_, false});
  unresolved_.reset();
  log(Level::warning, "ledger", "connected to PostgreSQL again",
      {{"last_sequence", std::to_string(found)}});
  const AfterLoss outcome = after_loss(lost.before, lost.after, found, lost.refused);
  if (outcome != AfterLoss::restart) return outcome;
  const bool may_be_committed = lost.after != lost.before && !lost.refused;
  return conflict("the database holds sequence number " + std::to_string(found) + ", expected " +
                  std::to_string(lost.before) +
                  (may_be_committed ? " or " + std::to_string(lost.after) : "") +
                  ": it was changed by another program, restored from a backup, or holds a commit "
                  "that was reported as failed");
}

// Waits until the transaction of the lost connection has ended: it holds a lock on the row of the
// lease from its first statement to its end.
Result<uint64_t> PostgresLedger::durable_sequence() {
  auto fresh = TRY(on_postgres::connect(settings_, on_postgres::writer_session(fencing_)));
  TRY(fresh->run(on_postgres::end_writer(fencing_)));
  TRY(fresh->run({"BEGIN"}));
  const postgres::Rows lease =
      TRY(fresh->run({"SELECT fencing FROM lease WHERE id = 1 FOR UPDATE"}));
  const postgres::Rows last = TRY(fresh->run({"SELECT coalesce(max(sequence), 0) FROM commands"}));
  TRY(fresh->run({"COMMIT"}));
  if (lease.count() != 1 || uint64_t(lease.integer(0, 0)) != fencing_)
    return conflict(on_postgres::kFenced);
  writer_ = std::move(fresh);
  return uint64_t(last.integer(0, 0));
}

}  // namespace

AfterLoss after_loss(uint64_t before, uint64_t after, uint64_t found, bool refused) {
  if (found == before) return AfterLoss::not_committed;
  return found == after && !refused ? AfterLoss::committed : AfterLoss::restart;
}

Result<void> prepare_postgres(const PostgresSettings& settings, const LedgerOwner& owner) {
  const auto connection = TRY(on_postgres::connect(settings, "trainyard"));
  const std::string opening = "opening the ledger in the " + connection->label();
  if (!TRY(on_postgres::has_tables(*connection).in(opening)))
    TRY(on_postgres::create_tables(*connection, owner).in(opening));
  return on_postgres::check_owner(*connection, owner).in(opening);
}

Result<void> adopt_postgres(const PostgresSettings& settings, const LedgerOwner& owner) {
  const auto connection = TRY(on_postgres::connect(settings, "trainyard"));
  if (!TRY(on_postgres::has_tables(*connection)))
    return not_found("the " + connection->label() + " has no ledger of Trainyard");
  const postgres::Rows changed = TRY(
      connection->run({"UPDATE ledger SET directory = $1, machine = $2 WHERE id = 1 AND account = "
                       "$3",
                       {owner.directory, owner.machine, owner.account}}));
  if (changed.changed() == 1) return {};
  return on_postgres::check_owner(*connection, owner).in("adopting the ledger");
}

Result<std::unique_ptr<Ledger>> open_postgres(const PostgresSettings& settings, uint64_t fencing,
                                              uint64_t commands_max, const ResourceCheck& check) {
  auto ledger = std::make_unique<PostgresLedger>(settings, fencing, commands_max);
  TRY(ledger->prepare(check).in("opening the ledger in the " +
                                TRY(postgres::describe_url(settings.url))));
  return std::unique_ptr<Ledger>(std::move(ledger));
}

Result<std::vector<SetAside>> read_set_aside(const PostgresSettings& settings) {
  const auto connection = TRY(on_postgres::connect(settings, "trainyard"));
  if (!TRY(on_postgres::has_tables(*connection)))
    return not_found("the " + connection->label() + " has no ledger of Trainyard");
  const postgres::Rows rows =
      TRY(connection->run({"SELECT kind, name, number, reason FROM set_aside ORDER BY place"}));
  std::vector<SetAside> found;
  for (size_t row = 0; row < rows.count(); ++row)
    found.push_back(
        {rows.text(row, 0), rows.text(row, 1), rows.integer(row, 2), rows.text(row, 3)});
  return found;
}

Result<domain::Records> read_postgres_records(const PostgresSettings& settings) {
  const auto connection = TRY(on_postgres::connect(settings, "trainyard"));
  if (!TRY(on_postgres::has_tables(*connection)))
    return not_found("the " + connection->label() + " has no ledger of Trainyard");
  return on_postgres::records_of(*connection);
}

}  // namespace trainyard::ledger
