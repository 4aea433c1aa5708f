#include "observe/database.hpp"

#include <sqlite3.h>

namespace trainyard::observe {
namespace {

// Pages kept in memory per connection, in KiB: an idle server is small, and the kernel caches the file
// anyway.
constexpr int kCacheKibibytes = 1024;
// The WAL is cut back to this length after a checkpoint, so that a burst does not keep its disk space.
constexpr int64_t kJournalBytesMax = 8 << 20;
constexpr int kBusyMilliseconds =
    5000;  // readers and the checkpoint meet for microseconds; more is a stuck disk

Kind kind_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Kind::exhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Kind::corrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return Kind::unavailable;
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return Kind::denied;
    default:
      return Kind::internal;
  }
}

Error error_of(sqlite3* handle, const std::string& doing) {
  return Error{kind_of(sqlite3_errcode(handle)), doing + ": " + sqlite3_errmsg(handle)};
}

}  // namespace

Statement::Statement(Statement&& other) noexcept : statement_(other.statement_), bound_(other.bound_) {
  other.statement_ = nullptr;
}
Statement::~Statement() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}
Statement& Statement::bind(int64_t number) {
  sqlite3_bind_int64(statement_, ++bound_, number);
  return *this;
}
Statement& Statement::bind(double number) {
  sqlite3_bind_double(statement_, ++bound_, number);
  return *this;
}
Statement& Statement::bind(std::string_view bytes) {
  sqlite3_bind_blob(statement_, ++bound_, bytes.empty() ? "" : bytes.data(), int(bytes.size()),
                    SQLITE_STATIC);
  return *this;
}
Statement& Statement::bind_nothing() {
  sqlite3_bind_null(statement_, ++bound_);
  return *this;
}
Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return error_of(sqlite3_db_handle(statement_), sqlite3_sql(statement_));
}
Result<void> Statement::run() {
  TRY(step());
  return ok();
}
int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  return data ? std::string(static_cast<const char*>(data), size_t(sqlite3_column_bytes(statement_, column)))
              : std::string();
}
bool Statement::empty(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path, bool read_only) {
  sqlite3* handle = nullptr;
  const int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Connection> connection(new Connection(handle));
  if (code != SQLITE_OK) return connection->error("opening " + path);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  TRY(connection->execute("PRAGMA cache_size=-" + std::to_string(kCacheKibibytes)));
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

Result<Statement> Connection::prepare(const char* sql) {
  auto found = statements_.find(std::string_view(sql));
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK)
      return error(sql);
    found = statements_.emplace(sql, statement).first;
  }
  return Statement(found->second);
}

Result<void> Connection::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error(sql);
  return ok();
}

int64_t Connection::last_row() const { return sqlite3_last_insert_rowid(handle_); }
int Connection::changes() const { return sqlite3_changes(handle_); }
Error Connection::error(const std::string& doing) const { return error_of(handle_, doing); }

Result<std::unique_ptr<Database>> Database::open(const std::string& path, int version,
                                                 const std::string& schema) {
  std::unique_ptr<Database> database(new Database);
  database->writer_ = TRY(Connection::open(path, false));
  Connection& writer = *database->writer_;
  TRY(writer.execute("PRAGMA journal_mode=WAL").in(path));
  TRY(writer.execute("PRAGMA synchronous=FULL; PRAGMA journal_size_limit=" + std::to_string(kJournalBytesMax))
          .in(path));
  {
    auto statement = TRY(writer.prepare("PRAGMA user_version"));
    TRY(statement.step());
    const int64_t found = statement.number(0);
    if (found > version)
      return corrupt(path + ": written by a newer version (" + std::to_string(found) + ", known is " +
                     std::to_string(version) + ")");
  }
  TRY(writer
          .execute("BEGIN IMMEDIATE; " + schema + "; PRAGMA user_version=" + std::to_string(version) +
                   "; COMMIT")
          .in(path));
  database->reader_ = TRY(Connection::open(path, true));
  return database;
}

Result<void> Database::write(Work work) {
  Pending mine{.work = std::move(work)};
  std::unique_lock lock(mutex_);
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
    TRY(writer_->execute("BEGIN IMMEDIATE"));
    for (Pending* each : group) {
      TRY(writer_->execute("SAVEPOINT one"));
      each->result = each->work(*writer_);
      if (!each->result) TRY(writer_->execute("ROLLBACK TO one"));
      TRY(writer_->execute("RELEASE one"));
    }
    return writer_->execute("COMMIT");
  };
  if (auto result = all(); !result) {
    (void)writer_->execute(
        "ROLLBACK");  // SQLite may have done so itself; then this one says so, and that is fine
    for (Pending* each : group) each->result = result.error();
  }
}

Result<void> Database::read(const Work& work) {
  std::lock_guard lock(reader_mutex_);
  return work(*reader_);
}

}  // namespace trainyard::observe
