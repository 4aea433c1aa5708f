#include "ledger/copy.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <vector>

#include "base/fnv.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "ledger/on_postgres/set_aside.hpp"
#include "ledger/on_postgres/tables.hpp"
#include "ledger/set_aside.hpp"
#include "ledger/tables.hpp"
#include "os/files.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::ledger {
namespace {

enum class Holds { integer, real, text };

struct ColumnLayout {
  const char* name;
  Holds holds;
};

struct TableLayout {
  const char* name;
  std::vector<ColumnLayout> columns;
  const char* key;  // the columns by which rows are ordered
};

using Row = std::vector<postgres::Value>;
using EachRow = std::function<Result<void>(const Row&)>;

// The tables of the current version of both databases.
const std::vector<TableLayout>& all_tables() {
  constexpr auto kInteger = Holds::integer, kReal = Holds::real, kText = Holds::text;
  static const std::vector<TableLayout> kTables = {
      {"commands",
       {{"sequence", kInteger}, {"at", kInteger}, {"kind", kText}, {"body", kText}},
       "sequence"},
      {"jobs",
       {{"number", kInteger},
        {"region", kText},
        {"name", kText},
        {"state", kText},
        {"live", kInteger},
        {"status_order", kInteger},
        {"created", kInteger},
        {"modified", kInteger},
        {"spec", kText},
        {"progress", kText},
        {"queue", kText},
        {"parent", kInteger},
        {"reserved", kInteger},
        {"batch_status", kInteger}},
       "number"},
      {"tags", {{"arn", kText}, {"tags", kText}}, "arn"},
      {"nouns",
       {{"kind", kText},
        {"region", kText},
        {"name", kText},
        {"revision", kInteger},
        {"active", kInteger},
        {"body", kText}},
       "kind, region, name, revision"},
      {"usages",
       {{"region", kText},
        {"queue", kText},
        {"share", kText},
        {"cpu_seconds", kReal},
        {"at", kInteger},
        {"cpus", kReal}},
       "region, queue, share"},
      {"records",
       {{"kind", kText}, {"name", kText}, {"revision", kInteger}, {"body", kText}},
       "kind, name"},
      {"set_aside",
       {{"place", kInteger},
        {"kind", kText},
        {"name", kText},
        {"number", kInteger},
        {"reason", kText},
        {"record", kText}},
       "place"}};
  return kTables;
}

std::string columns_of(const TableLayout& table) {
  std::string text;
  for (const ColumnLayout& column : table.columns)
    text += (text.empty() ? "" : ", ") + std::string(column.name);
  return text;
}

std::string select_all(const TableLayout& table) {
  return "SELECT " + columns_of(table) + " FROM " + table.name + " ORDER BY " + table.key;
}

// Builds the statement that inserts a row. `mark` formats the parameter of a position, from 1.
std::string insert_into(const TableLayout& table, const std::function<std::string(size_t)>& mark) {
  std::string marks;
  for (size_t i = 1; i <= table.columns.size(); ++i) marks += (i == 1 ? "" : ", ") + mark(i);
  return "INSERT INTO " + std::string(table.name) + " (" + columns_of(table) + ") VALUES (" +
         marks + ")";
}

// Reads all rows of a database as of one instant.
class Source {
 public:
  virtual ~Source() = default;
  virtual Result<void> read(const TableLayout& table, const EachRow& each) = 0;
};

class FileSource final : public Source {
 public:
  static Result<std::unique_ptr<FileSource>> open(const std::string& path) {
    if (!os::exists(path)) return not_found("no ledger found at " + path);
    auto connection = TRY(sqlite::Connection::open(path, sqlite::Access::read));
    TRY(check_application(*connection));
    if (TRY(connection->integer("PRAGMA user_version")) != file_version())
      return conflict("the ledger " + path +
                      " has another version: start this release's server with it once");
    TRY(connection->run("BEGIN"));
    const bool aside =
        TRY(connection->integer("SELECT count(*) FROM sqlite_master WHERE name = 'set_aside'")) ==
        1;
    return std::unique_ptr<FileSource>(new FileSource(std::move(connection), aside));
  }

  Result<void> read(const TableLayout& table, const EachRow& each) override {
    if (std::string_view(table.name) == "set_aside" && !set_aside_) return {};
    sqlite::Statement rows = TRY(connection_->prepare_once(select_all(table)));
    while (TRY(rows.step())) {
      Row row;
      for (int i = 0; i < int(table.columns.size()); ++i) {
        const Holds holds = table.columns[size_t(i)].holds;
        if (holds == Holds::integer)
          row.emplace_back(rows.integer(i));
        else if (holds == Holds::real)
          row.emplace_back(rows.real(i));
        else
          row.emplace_back(rows.text(i));
      }
      TRY(each(row));
    }
    return {};
  }

 private:
  FileSource(std::unique_ptr<sqlite::Connection> connection, bool aside)
      : connection_(std::move(connection)), set_aside_(aside) {}
  std::unique_ptr<sqlite::Connection> connection_;
  const bool set_aside_;  // the table exists
};

class PostgresSource final : public Source {
 public:
  static Result<std::unique_ptr<PostgresSource>> open(const PostgresSettings& settings) {
    auto connection = TRY(on_postgres::connect(settings, "trainyard copy"));
    if (!TRY(on_postgres::has_tables(*connection)))
      return not_found("the " + connection->label() + " has no ledger of Trainyard");
    TRY(connection->run_script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
    return std::unique_ptr<PostgresSource>(new PostgresSource(std::move(connection)));
  }

  Result<void> read(const TableLayout& table, const EachRow& each) override {
    TRY(connection_->run_script("DECLARE pages NO SCROLL CURSOR FOR " + select_all(table)));
    for (;;) {
      const postgres::Rows page = TRY(connection_->run_once({"FETCH 1000 FROM pages"}));
      for (size_t i = 0; i < page.count(); ++i) TRY(each(row_at(table, page, i)));
      if (page.count() == 0) break;
    }
    return connection_->run_script("CLOSE pages");
  }

 private:
  explicit PostgresSource(std::unique_ptr<postgres::Connection> connection)
      : connection_(std::move(connection)) {}

  static Row row_at(const TableLayout& table, const postgres::Rows& page, size_t at) {
    Row row;
    for (int i = 0; i < int(table.columns.size()); ++i) {
      const Holds holds = table.columns[size_t(i)].holds;
      if (holds == Holds::integer)
        row.emplace_back(page.integer(at, i));
      else if (holds == Holds::real)
        row.emplace_back(page.real(at, i));
      else
        row.emplace_back(page.text(at, i));
    }
    return row;
  }

  std::unique_ptr<postgres::Connection> connection_;
};

// Copies all tables. `insert` writes one row.
Result<Copied> copy_all(Source& source,
                        const std::function<Result<void>(const TableLayout&, const Row&)>& insert) {
  Copied copied;
  for (const TableLayout& table : all_tables()) {
    const bool jobs = std::string_view(table.name) == "jobs";
    TRY(source
            .read(table,
                  [&](const Row& row) -> Result<void> {
                    ++copied.rows;
                    if (jobs) ++copied.jobs;
                    return insert(table, row);
                  })
            .in("copying the table " + std::string(table.name)));
  }
  return copied;
}

// Writes rows in groups, each of one round trip.
class PostgresTarget {
 public:
  explicit PostgresTarget(postgres::Connection& connection) : connection_(connection) {}

  Result<void> insert(const TableLayout& table, const Row& row) {
    rows_.push_back({insert_into(table, [](size_t i) { return "$" + std::to_string(i); }), row});
    return rows_.size() < kRowsTogether ? Result<void>() : flush();
  }
  Result<void> flush() {
    TRY(connection_.run_together(rows_));
    rows_.clear();
    return {};
  }

 private:
  static constexpr size_t kRowsTogether = 500;  // some megabytes
  postgres::Connection& connection_;
  std::vector<postgres::Query> rows_;
};

Result<Copied> write_postgres(postgres::Connection& connection, Source& source, uint64_t fencing) {
  if (TRY(connection.run(on_postgres::check_fencing(fencing))).count() != 1)
    return conflict(on_postgres::kFenced);
  for (const TableLayout& table : all_tables())
    if (TRY(connection.run_once({"SELECT 1 FROM " + std::string(table.name) + " LIMIT 1"}))
            .count() > 0)
      return conflict("the " + connection.label() + " has a ledger with content (in the table " +
                      table.name + "): use an empty database");
  PostgresTarget target(connection);
  const Copied copied = TRY(copy_all(
      source, [&](const TableLayout& table, const Row& row) { return target.insert(table, row); }));
  TRY(target.flush());
  return copied;
}

Result<void> insert_into_file(sqlite::Connection& connection, const TableLayout& table,
                              const Row& row) {
  sqlite::Statement insert =
      TRY(connection.prepare(insert_into(table, [](size_t) { return "?"; })));
  for (const postgres::Value& value : row) {
    if (const auto* number = std::get_if<int64_t>(&value))
      insert.bind(*number);
    else if (const auto* real = std::get_if<double>(&value))
      insert.bind(*real);
    else
      insert.bind(std::get<std::string>(value));
  }
  return insert.run();
}

Result<uint64_t> checksum_of(Source& source) {
  uint64_t checksum = kFnvBasis;
  TRY(copy_all(source, [&](const TableLayout& table, const Row& row) -> Result<void> {
    Json line = Json::array({table.name});
    for (const postgres::Value& value : row) {
      if (const auto* number = std::get_if<int64_t>(&value))
        line.push_back(*number);
      else if (const auto* real = std::get_if<double>(&value))
        line.push_back(*real);
      else
        line.push_back(to_hex(std::get<std::string>(value)));
    }
    checksum = fnv1a(dump(line), checksum);
    return {};
  }));
  return checksum;
}

}  // namespace

Result<Copied> copy_to_postgres(const std::string& file, const PostgresSettings& settings,
                                uint64_t fencing) {
  const auto source = TRY(FileSource::open(file));
  const auto connection = TRY(on_postgres::connect(settings, "trainyard copy"));
  TRY(connection->run({"BEGIN"}));
  // If the connection fails, the transaction is rolled back.
  const Copied copied = TRY(write_postgres(*connection, *source, fencing));
  TRY(connection->run({"COMMIT"}));
  return copied;
}

Result<Copied> copy_to_file(const PostgresSettings& settings, const std::string& file) {
  const auto source = TRY(PostgresSource::open(settings));
  TRY(open_sqlite(file));  // creates the tables, or checks that the file is a ledger
  const auto target = TRY(sqlite::Connection::open(file));
  TRY(target->run("PRAGMA synchronous = FULL"));
  TRY(make_set_aside_table(*target));
  TRY(target->run("BEGIN IMMEDIATE"));
  for (const TableLayout& table : all_tables())
    if (TRY(target->integer("SELECT count(*) FROM " + std::string(table.name))) > 0)
      return conflict("the ledger " + file + " has content (in the table " + table.name +
                      "): move it away");
  const Copied copied = TRY(copy_all(*source, [&](const TableLayout& table, const Row& row) {
    return insert_into_file(*target, table, row);
  }));
  TRY(target->run("COMMIT"));
  TRY(target->run("PRAGMA wal_checkpoint(TRUNCATE)"));
  return copied;
}

Result<void> copy_file(const std::string& source, const std::string& target) {
  if (os::exists(target)) return conflict(target + " already exists");
  if (!os::exists(source)) return not_found("no database found at " + source);
  const auto connection = TRY(sqlite::Connection::open(source, sqlite::Access::read));
  return copy_ledger(*connection, target);
}

Result<void> move_file(const std::string& source, const std::string& target) {
  if (os::exists(target)) return conflict(target + " already exists");
  if (!os::exists(source)) return not_found("no database found at " + source);
  {
    // Moves the write-ahead log into the file; closing the database then removes the log.
    const auto connection = TRY(sqlite::Connection::open(source));
    if (TRY(connection->integer("PRAGMA wal_checkpoint(TRUNCATE)")) != 0)
      return conflict(source + " is in use by another process");
  }
  for (const char* log : {"-wal", "-shm"}) TRY(os::remove_all(source + log));
  std::error_code error;
  std::filesystem::rename(source, target, error);
  if (error) return from_errno("renaming to " + target, error.value());
  return os::sync_directory(std::filesystem::path(target).parent_path().string());
}

Result<uint64_t> checksum_of_file(const std::string& file) {
  return checksum_of(*TRY(FileSource::open(file)));
}

Result<uint64_t> checksum_of_postgres(const PostgresSettings& settings) {
  return checksum_of(*TRY(PostgresSource::open(settings)));
}

}  // namespace trainyard::ledger
