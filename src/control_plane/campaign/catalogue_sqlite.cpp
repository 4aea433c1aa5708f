// Implements the embedded catalogue in one SQLite file. Each query has its own read-only
// connection, so that a long query delays no other call.
#include <atomic>
#include <type_traits>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "campaign/catalogue.hpp"
#include "campaign/catalogue_schema.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::campaign {
namespace {

using sqlite::Connection;
using sqlite::Statement;

constexpr int kCataloguePagesMax = 1 << 20;  // of 4 KiB: four gigabytes
constexpr size_t kQueriesAtOnceMax = 8;      // each may hold an answer of kAnswerBytesMax

Error with_limits_named(Error error, const Connection& connection) {
  if (error.kind == Kind::cancelled && connection.took_too_much_memory())
    return exhausted("the statement takes more than " +
                     human_bytes(sqlite::Confinement().memory_bytes_max) + " of memory");
  if (error.kind == Kind::internal) error.kind = Kind::invalid;  // the SQL comes from a user
  if (error.kind == Kind::cancelled)
    return exhausted("the statement took longer than " + std::to_string(kStatementTimeMax / 1s) +
                     " s");
  return error;
}

void bind(Statement& statement, const Json& value) {
  if (value.is_number_integer())
    statement.bind(value.get<int64_t>());
  else if (value.is_number())
    statement.bind(value.get<double>());
  else if (value.is_null())
    statement.bind_null();
  else
    statement.bind(value.is_string() ? value.get<std::string>() : dump(value));
}

Json value_at(const Statement& statement, int column) {
  switch (statement.holds(column)) {
    case Statement::Holds::nothing:
      return nullptr;
    case Statement::Holds::integer:
      return statement.integer(column);
    case Statement::Holds::real:
      return statement.real(column);
    case Statement::Holds::text:
      return to_utf8(statement.text(column));
    case Statement::Holds::bytes:
      return to_base64(statement.bytes(column));
  }
  return nullptr;
}

class SqliteCatalogue final : public Catalogue {
 public:
  SqliteCatalogue(std::string path, Clock& clock) : path_(std::move(path)), clock_(clock) {}

  Result<void> open() {
    const MutexLock lock(mutex_);
    writer_ = TRY(Connection::open(path_));
    TRY(writer_->run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL").in(path_));
    TRY(writer_->run(kCatalogueSchema).in(path_));
    TRY(writer_->run("PRAGMA max_page_count=" + std::to_string(kCataloguePagesMax)).in(path_));
    writer_->confine({.reads_only = false, .may_continue = [this]() REQUIRES(mutex_) {
                        return clock_.monotonic() < writer_deadline_;
                      }});
    return {};
  }

  Result<QueryResult> query(const std::string& sql,
                            const std::vector<Provided>& provided) override {
    TRY(check_size(sql));
    const RunningQuery query(queries_);
    if (query.position() >= kQueriesAtOnceMax)
      return unavailable(std::to_string(kQueriesAtOnceMax) +
                         " queries are running, which is the limit: try again");
    auto reader = TRY(Connection::open(path_, sqlite::Access::read).in("opening the catalogue"));
    TRY(reader->run(
        // as confine(): a later change would drop the provided tables
        "PRAGMA temp_store=MEMORY"));
    for (const Provided& table : provided)
      if (mentions(sql, table.name)) TRY(provide(*reader, table));
    const auto deadline = clock_.monotonic() + kStatementTimeMax;
    reader->confine({.may_continue = [this, deadline] { return clock_.monotonic() < deadline; }});
    auto query_result = read_all(*reader, sql);
    if (!query_result) return with_limits_named(std::move(query_result).error(), *reader);
    return query_result;
  }

  Result<int64_t> change(const std::string& sql) override {
    TRY(check_size(sql));
    const MutexLock lock(mutex_);
    Connection& writer = *writer_;
    auto changed = in_transaction([&]() -> Result<int64_t> {
      writer.allow_transactions(false);
      const auto ran = writer.run(sql);
      writer.allow_transactions(true);
      TRY(Result<void>(ran));
      return writer.changes();
    });
    if (!changed) return with_limits_named(std::move(changed).error(), *writer_);
    return changed;
  }

  Result<bool> add(const std::string& table,
                   const std::map<std::string, std::string>& row) override {
    const MutexLock lock(mutex_);
    Connection& writer = *writer_;
    auto added = in_transaction([&]() -> Result<bool> {
      {
        auto there = TRY(writer.prepare_once("SELECT 1 FROM \"" + table + "\" WHERE name = ?"));
        if (TRY(there.bind(row.at("name")).step())) return false;
      }
      std::string names, placeholders;
      for (const auto& [column, value] : row) {
        names += (names.empty() ? "\"" : ", \"") + column + "\"";
        placeholders += placeholders.empty() ? "?" : ", ?";
      }
      auto insert = TRY(writer.prepare_once("INSERT INTO \"" + table + "\" (" + names +
                                            ") VALUES (" + placeholders + ")"));
      for (const auto& [column, value] : row) insert.bind(value);
      TRY(insert.run());
      return true;
    });
    if (!added) return with_limits_named(std::move(added).error(), *writer_);
    return added;
  }

 private:
  // Counts a running query during its lifetime.
  class RunningQuery {
   public:
    explicit RunningQuery(std::atomic<size_t>& running)
        : running_(running), position_(running_++) {}
    ~RunningQuery() { --running_; }
    RunningQuery(const RunningQuery&) = delete;
    size_t position() const { return position_; }

   private:
    std::atomic<size_t>& running_;
    const size_t position_;
  };

  template <class Work>
  std::invoke_result_t<const Work&> in_transaction(const Work& work) REQUIRES(mutex_) {
    writer_deadline_ = clock_.monotonic() + kStatementTimeMax;
    writer_->measure_memory();
    TRY(writer_->run("BEGIN IMMEDIATE"));
    auto done = work();
    if (!done) {
      (void)writer_->run("ROLLBACK");
      return done;
    }
    TRY(writer_->run("COMMIT"));
    return done;
  }

  static Result<void> provide(Connection& reader, const Provided& table) {
    std::string columns, placeholders;
    for (const auto& column : table.columns) {
      columns += (columns.empty() ? "" : ", ") + column;
      placeholders += placeholders.empty() ? "?" : ", ?";
    }
    TRY(reader.run("CREATE TEMP TABLE " + table.name + " (" + columns + ")"));
    TRY(reader.run("BEGIN"));
    for (const auto& row : table.rows) {
      auto insert =
          TRY(reader.prepare("INSERT INTO temp." + table.name + " VALUES (" + placeholders + ")"));
      for (const Json& value : row) bind(insert, value);
      TRY(insert.run());
    }
    return reader.run("COMMIT");
  }

  static Result<QueryResult> read_all(Connection& reader, const std::string& sql) {
    auto prepared = reader.prepare_once(sql);
    if (!prepared && prepared.error().kind == Kind::denied)
      return invalid("a query must read, and answer with rows: " + prepared.error().message);
    auto statement = TRY(std::move(prepared));
    if (statement.columns() == 0 || !statement.reads_only())
      return invalid("invalid query '" + shorten(sql, 200) +
                     "': it must read, and answer with rows");
    QueryResult query_result;
    for (int i = 0; i < statement.columns(); ++i)
      query_result.columns.push_back(statement.column_name(i));
    size_t bytes = 0;
    while (TRY(statement.step())) {
      auto& row = query_result.rows.emplace_back();
      for (int i = 0; i < statement.columns(); ++i) {
        row.push_back(value_at(statement, i));
        bytes += kCellBytes;
        if (row.back().is_string()) bytes += row.back().get_ref<const std::string&>().size();
      }
      TRY(check_answer(query_result.rows.size(), bytes));
    }
    return query_result;
  }

  const std::string path_;
  Clock& clock_;
  std::atomic<size_t> queries_ = 0;  // running
  Mutex mutex_;
  std::unique_ptr<Connection> writer_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds writer_deadline_ GUARDED_BY(mutex_) = std::chrono::nanoseconds::max();
};

}  // namespace

Result<std::unique_ptr<Catalogue>> open_sqlite_catalogue(const std::string& path, Clock& clock) {
  auto catalogue = std::make_unique<SqliteCatalogue>(path, clock);
  TRY(catalogue->open().in("opening the catalogue"));
  return std::unique_ptr<Catalogue>(std::move(catalogue));
}

}  // namespace trainyard::campaign
