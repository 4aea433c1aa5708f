#include "observe/database.hpp"

#include "base/thread_safety.hpp"

namespace trainyard::observe {
namespace {

// Page cache per connection: small, so that an idle server uses little memory; the kernel caches
// the file in any case.
constexpr int kCacheKibibytes = 1024;
// The WAL is cut back to this length after a checkpoint, so that a burst does not keep its disk
// space.
constexpr int64_t kJournalBytesMax = 8 << 20;

Result<std::unique_ptr<Connection>> open_connection(const std::string& path, sqlite::Access access,
                                                    const std::string& files) {
  auto connection = TRY(Connection::open(path, access, files));
  TRY(connection->run("PRAGMA cache_size=-" + std::to_string(kCacheKibibytes)));
  return connection;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& path, int version,
                                                 const std::string& schema,
                                                 const std::string& files) {
  std::unique_ptr<Database> database(new Database);
  database->writer_ = TRY(open_connection(path, sqlite::Access::read_and_write, files));
  Connection& writer = *database->writer_;
  TRY(writer.run("PRAGMA journal_mode=WAL").in(path));
  TRY(writer
          .run("PRAGMA synchronous=FULL; PRAGMA journal_size_limit=" +
               std::to_string(kJournalBytesMax))
          .in(path));
  {
    auto statement = TRY(writer.prepare("PRAGMA user_version"));
    TRY(statement.step());
    const int64_t found = statement.integer(0);
    if (found > version)
      return corrupt(path + ": written by a newer trainyard (format " + std::to_string(found) +
                     ", this program reads up to " + std::to_string(version) +
                     "): use that version");
  }
  TRY(writer
          .run("BEGIN IMMEDIATE; " + schema + "; PRAGMA user_version=" + std::to_string(version) +
               "; COMMIT")
          .in(path));
  const MutexLock lock(database->reader_mutex_);
  database->reader_ = TRY(open_connection(path, sqlite::Access::read, files));
  return database;
}

Result<void> Database::write(Work work, std::function<void()> committed) {
  Pending mine{.work = std::move(work), .committed = std::move(committed)};
  MutexLock lock(mutex_);
  waiting_.push_back(&mine);
  while (!mine.done) {
    if (leading_) {
      changed_.wait(lock);
      continue;
    }
    leading_ = true;
    std::vector<Pending*> group;
    group.swap(waiting_);
    lock.unlock();
    commit(group);
    lock.lock();
    for (Pending* each : group) each->done = true;
    leading_ = false;
    changed_.notify_all();
  }
  return std::move(mine.result);
}

void Database::commit(std::vector<Pending*>& group) {
  const auto all = [&]() -> Result<void> {
    TRY(writer_->run("BEGIN IMMEDIATE"));
    for (Pending* each : group) {
      TRY(writer_->run("SAVEPOINT one"));
      each->result = each->work(*writer_);
      if (!each->result) TRY(writer_->run("ROLLBACK TO one"));
      TRY(writer_->run("RELEASE one"));
    }
    return writer_->run("COMMIT");
  };
  if (auto result = all(); !result) {
    // SQLite may have rolled back already, and then returns an error here, which is ignored.
    (void)writer_->run("ROLLBACK");
    for (Pending* each : group) each->result = result.error();
    return;
  }
  for (Pending* each : group)
    if (each->result && each->committed) each->committed();
}

void Database::leave_log() {
  writer_->leave_log();
  const MutexLock lock(reader_mutex_);
  reader_->leave_log();
}

Result<void> Database::read(const Work& work) {
  MutexLock lock(reader_mutex_);
  TRY(reader_->run("BEGIN"));
  auto result = work(*reader_);
  auto ended = reader_->run("COMMIT");
  if (ended) return result;
  // SQLite may have ended the transaction already, and then returns an error here.
  (void)reader_->run("ROLLBACK");
  return result ? std::move(ended) : std::move(result);
}

}  // namespace trainyard::observe
