#include "sqlite/connection.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace trainyard::sqlite {
namespace {

// A reader is blocked only while the log of a crashed writer is recovered. A longer lock belongs to
// another program.
constexpr int kBusyMillisecondsMax = 5'000;

// Instructions of SQLite's virtual machine between two calls of check_progress(): microseconds,
// unless each makes a value of the largest size.
constexpr int kStepsBetweenChecks = 100;

// Functions of SQLite and of its shell that access files or the state of other connections.
constexpr const char* kFunctionsDenied[] = {"load_extension", "readfile",       "writefile",
                                            "edit",           "fts3_tokenizer", "sqlite_log"};

Error error_of(sqlite3* database, std::string_view doing) {
  const int code = sqlite3_extended_errcode(database);
  Kind kind = Kind::internal;
  switch (code & 0xff) {
    case SQLITE_FULL:
      kind = Kind::exhausted;
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      kind = Kind::unavailable;
      break;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      kind = Kind::denied;
      break;
    case SQLITE_CANTOPEN:
      kind = Kind::not_found;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      kind = Kind::corrupt;
      break;
    case SQLITE_CONSTRAINT:
      kind = Kind::conflict;
      break;
    case SQLITE_INTERRUPT:
      kind = Kind::cancelled;
      break;
    // The file system reports a full disk when a write or an extension of the shared index fails,
    // not as SQLITE_FULL.
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ)
        kind = Kind::corrupt;
      else if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC)
        kind = Kind::unavailable;
      else
        kind = Kind::exhausted;
      break;
    default:
      break;
  }
  return {kind, std::string(doing) + ": " + sqlite3_errmsg(database)};
}

// Lets connections allocate pages one by one. By default SQLite allocates and touches twenty pages
// for each connection, but most connections use only a few.
void allocate_pages_singly() {
  static const int done = sqlite3_config(SQLITE_CONFIG_PAGECACHE, nullptr, 0, 0);
  (void)done;
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      kept_(other.kept_),
      bound_(other.bound_) {}

Statement::~Statement() {
  if (!statement_) return;
  if (!kept_) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::bind(int64_t value) {
  CHECK(sqlite3_bind_int64(statement_, ++bound_, value) == SQLITE_OK,
        "the statement has this parameter");
  return *this;
}

Statement& Statement::bind(double value) {
  CHECK(sqlite3_bind_double(statement_, ++bound_, value) == SQLITE_OK,
        "the statement has this parameter");
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  CHECK(sqlite3_bind_text64(statement_, ++bound_, text.data() ? text.data() : "", text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK,
        "the statement has this parameter, and the text is below SQLite's limit of a gigabyte");
  return *this;
}

Statement& Statement::bind_bytes(std::string_view bytes) {
  CHECK(sqlite3_bind_blob64(statement_, ++bound_, bytes.empty() ? "" : bytes.data(), bytes.size(),
                            SQLITE_STATIC) == SQLITE_OK,
        "the statement has this parameter, and the bytes are below SQLite's limit of a gigabyte");
  return *this;
}

Statement& Statement::bind_null() {
  CHECK(sqlite3_bind_null(statement_, ++bound_) == SQLITE_OK, "the statement has this parameter");
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return error_of(database_, sqlite3_sql(statement_));
}

Result<void> Statement::run() {
  const bool row = TRY(step());
  CHECK(!row, "a statement that is run has no rows");
  return {};
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes ? std::string(bytes, size_t(sqlite3_column_bytes(statement_, column)))
               : std::string();
}

std::string Statement::bytes(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes ? std::string(bytes, size_t(sqlite3_column_bytes(statement_, column)))
               : std::string();
}

bool Statement::empty(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

int Statement::columns() const { return sqlite3_column_count(statement_); }

std::string Statement::column_name(int column) const {
  const char* name = sqlite3_column_name(statement_, column);
  return name ? name : "";
}

Statement::Holds Statement::holds(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return Holds::integer;
    case SQLITE_FLOAT:
      return Holds::real;
    case SQLITE_TEXT:
      return Holds::text;
    case SQLITE_BLOB:
      return Holds::bytes;
    default:
      return Holds::nothing;
  }
}

bool Statement::reads_only() const { return sqlite3_stmt_readonly(statement_) != 0; }

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path, Access access,
                                                     const std::string& files) {
  allocate_pages_singly();
  sqlite3* database = nullptr;
  const int flags =
      access == Access::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX,
                                   files.empty() ? nullptr : files.c_str());
  std::unique_ptr<Connection> connection(new Connection(database));
  if (code != SQLITE_OK) return error_of(database, "opening " + path);
  sqlite3_busy_timeout(database, kBusyMillisecondsMax);
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, statement] : prepared_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

Result<Statement> Connection::prepare(std::string_view sql) {
  auto found = prepared_.find(sql);
  if (found == prepared_.end()) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(database_, sql.data(), int(sql.size()), SQLITE_PREPARE_PERSISTENT,
                           &statement, nullptr) != SQLITE_OK)
      return error_of(database_, sql);
    found = prepared_.emplace(sql, statement).first;
  }
  return Statement(database_, found->second, true);
}

Result<Statement> Connection::prepare_once(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), int(sql.size()), &statement, &rest) != SQLITE_OK)
    return error_of(database_, sql);
  Statement prepared(database_, statement, false);
  if (!statement) return invalid("preparing SQL: no statement");
  if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos)
    return invalid("preparing SQL: more than one statement");
  return prepared;
}

Result<void> Connection::run(const std::string& sql) {
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return error_of(database_, sql);
  return {};
}

Result<int64_t> Connection::integer(const std::string& sql) {
  Statement statement = TRY(prepare(sql));
  if (!TRY(statement.step())) return not_found("no row: " + sql);
  return statement.integer(0);
}

bool Connection::is_allowed(int action, const char* first, const char* second) const {
  switch (action) {
    // SQLite reports this action for table-valued functions (json_each). An UPDATE of the schema
    // is rejected in any case, since the schema is read-only.
    case SQLITE_UPDATE:
      return !confinement_.reads_only || sqlite3_stricmp(first ? first : "", "sqlite_master") == 0;
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return true;
    case SQLITE_FUNCTION:
      return std::ranges::none_of(kFunctionsDenied, [&](const char* denied) {
        return sqlite3_stricmp(second ? second : "", denied) == 0;
      });
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
    case SQLITE_PRAGMA:
    case SQLITE_CREATE_VTABLE:  // a module may access anything
      return false;
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
      return transactions_;
    default:
      return !confinement_.reads_only;
  }
}

bool Connection::check_progress() {
  if (sqlite3_memory_used() - memory_bytes_before_ > int64_t(confinement_.memory_bytes_max)) {
    took_too_much_memory_ = true;
    return false;
  }
  return confinement_.may_continue();
}

void Connection::measure_memory() {
  memory_bytes_before_ = sqlite3_memory_used();
  took_too_much_memory_ = false;
}

void Connection::confine(Confinement confinement) {
  confinement_ = std::move(confinement);
  measure_memory();
  // Keep sorted and intermediate rows in memory, where they are limited, instead of on disk.
  sqlite3_exec(database_,
               "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-8192; PRAGMA trusted_schema=OFF",
               nullptr, nullptr, nullptr);
  if (confinement_.reads_only)
    sqlite3_exec(database_, "PRAGMA query_only=ON", nullptr, nullptr, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(database_, SQLITE_LIMIT_ATTACHED, 0);  // VACUUM INTO attaches as well
  sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, confinement_.value_bytes_max);
  sqlite3_limit(database_, SQLITE_LIMIT_SQL_LENGTH, confinement_.statement_bytes_max);
  sqlite3_limit(database_, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, confinement_.pattern_bytes_max);
  sqlite3_limit(database_, SQLITE_LIMIT_WORKER_THREADS, 0);
  sqlite3_set_authorizer(
      database_,
      [](void* self, int action, const char* first, const char* second, const char*, const char*) {
        return static_cast<Connection*>(self)->is_allowed(action, first, second) ? SQLITE_OK
                                                                                 : SQLITE_DENY;
      },
      this);
  sqlite3_progress_handler(
      database_, kStepsBetweenChecks,
      [](void* self) { return static_cast<Connection*>(self)->check_progress() ? 0 : 1; }, this);
}

void Connection::leave_log() {
  sqlite3_db_config(database_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

int64_t Connection::changes() const { return sqlite3_changes64(database_); }

int64_t Connection::last_row() const { return sqlite3_last_insert_rowid(database_); }

}  // namespace trainyard::sqlite
