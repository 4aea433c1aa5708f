// Implements the catalogue on a PostgreSQL server. Each call opens a connection: calls are rare,
// and a restart of the server leaves no connection in an unknown state.
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "campaign/catalogue.hpp"
#include "campaign/catalogue_schema.hpp"
#include "postgres/pq_library.hpp"

namespace trainyard::campaign {
namespace {

using postgres::pq;

constexpr const char* kConnectSecondsMax = "5";
// PostgreSQL's numbers of the types whose text is a number.
constexpr Oid kInt8 = 20, kInt2 = 21, kInt4 = 23, kFloat4 = 700, kFloat8 = 701, kNumeric = 1700;

// Selects true if statements of this role could access more than the database.
constexpr const char* kIsPowerful =
    "SELECT rolsuper OR rolcreaterole OR pg_has_role(oid, 'pg_read_server_files', 'MEMBER')"
    " OR pg_has_role(oid, 'pg_write_server_files', 'MEMBER')"
    " OR pg_has_role(oid, 'pg_execute_server_program', 'MEMBER') FROM pg_roles WHERE rolname = "
    "session_user";

struct Closer {
  void operator()(PGconn* connection) const { pq().PQfinish(connection); }
  void operator()(PGresult* result) const { pq().PQclear(result); }
};
using Connected = std::unique_ptr<PGconn, Closer>;
using Answer = std::unique_ptr<PGresult, Closer>;

std::string message_of(const char* message) { return std::string(trim(message ? message : "")); }

// Determines the kind of error from the SQLSTATE's class.
Error error_of(PGconn* connection, const PGresult* result) {
  const char* state = result ? pq().PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  const std::string_view code = state ? state : "";
  Kind kind = Kind::invalid;
  if (code == "57014")
    kind = Kind::exhausted;  // statement_timeout
  else if (code.empty() || code.starts_with("08") || code.starts_with("57"))
    kind = Kind::unavailable;
  else if (code == "42501" || code.starts_with("28"))
    kind = Kind::denied;
  else if (code.starts_with("53"))
    kind = Kind::exhausted;
  else if (code.starts_with("23"))
    kind = Kind::conflict;
  return {kind,
          message_of(result ? pq().PQresultErrorMessage(result) : pq().PQerrorMessage(connection))};
}

Result<Answer> finish(PGconn* connection, PGresult* raw) {
  Answer answer(raw);
  const auto status = answer ? pq().PQresultStatus(answer.get()) : PGRES_FATAL_ERROR;
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    return error_of(connection, answer.get());
  return answer;
}

// Runs any number of statements, without parameters.
Result<Answer> run(PGconn* connection, const std::string& sql) {
  return finish(connection, pq().PQexec(connection, sql.c_str()));
}

// Runs one statement with parameters; nullptr is NULL.
Result<Answer> run(PGconn* connection, const std::string& sql, const std::vector<Json>& values) {
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
  texts.reserve(values.size());
  for (const Json& value : values) {
    texts.push_back(value.is_string() ? value.get<std::string>() : dump(value));
    pointers.push_back(value.is_null() ? nullptr : texts.back().c_str());
  }
  return finish(connection, pq().PQexecParams(connection, sql.c_str(), int(values.size()), nullptr,
                                              pointers.data(), nullptr, nullptr, 0));
}

Json value_at(const PGresult* result, int row, int column) {
  if (pq().PQgetisnull(result, row, column)) return nullptr;
  const std::string text(pq().PQgetvalue(result, row, column),
                         size_t(pq().PQgetlength(result, row, column)));
  const Oid type = pq().PQftype(result, column);
  if (type == kInt2 || type == kInt4 || type == kInt8) {
    if (const auto number = parse_int(text)) return *number;
  } else if (type == kFloat4 || type == kFloat8 || type == kNumeric) {
    if (const auto number = parse_double(text)) return *number;
  }
  return to_utf8(text);
}

std::string placeholders(size_t count) {
  std::string text;
  for (size_t i = 1; i <= count; ++i) text += (i == 1 ? "$" : ", $") + std::to_string(i);
  return text;
}

class PostgresCatalogue final : public Catalogue {
 public:
  PostgresCatalogue(std::string url, std::string query_url)
      : url_(std::move(url)), query_url_(std::move(query_url)) {}

  Result<QueryResult> query(const std::string& sql,
                            const std::vector<Provided>& provided) override {
    TRY(check_size(sql));
    if (!query_url_.empty()) TRY(prepare());
    const Connected connection = TRY(query_url_.empty() ? connect() : connect_to(query_url_));
    TRY(run(connection.get(), "BEGIN"));
    for (const Provided& table : provided)
      if (mentions(sql, table.name)) TRY(provide(connection.get(), table));
    TRY(run(connection.get(), "SET TRANSACTION READ ONLY"));
    // A cursor can be declared only for one reading statement: not for COPY, CALL, DO, nor for a
    // WITH that deletes.
    TRY(run(connection.get(), "DECLARE answer NO SCROLL CURSOR FOR " + sql, {}));
    return read_all(connection.get());  // closing the connection rolls the transaction back
  }

  Result<int64_t> change(const std::string& sql) override {
    TRY(check_size(sql));
    const Connected connection = TRY(connect());
    const Answer answer = TRY(run(connection.get(), sql));  // one string is one transaction
    const auto changed = parse_int(pq().PQcmdTuples(answer.get()));
    return changed ? *changed : 0;
  }

  Result<bool> add(const std::string& table,
                   const std::map<std::string, std::string>& row) override {
    const Connected connection = TRY(connect());
    TRY(run(connection.get(), "BEGIN"));
    // Locks out other writers, so that the existing rows are visible.
    TRY(run(connection.get(), "LOCK TABLE \"" + table + "\" IN SHARE ROW EXCLUSIVE MODE"));
    const Answer there = TRY(
        run(connection.get(), "SELECT 1 FROM \"" + table + "\" WHERE name = $1", {row.at("name")}));
    if (pq().PQntuples(there.get()) > 0) return false;
    std::string names;
    std::vector<Json> values;
    for (const auto& [column, value] : row) {
      names += (names.empty() ? "\"" : ", \"") + column + "\"";
      values.push_back(value);
    }
    TRY(run(connection.get(),
            "INSERT INTO \"" + table + "\" (" + names + ") VALUES (" + placeholders(values.size()) +
                ")",
            values));
    TRY(run(connection.get(), "COMMIT"));
    return true;
  }

 private:
  Result<Connected> connect_to(const std::string& url) {
    const char* names[] = {"dbname", "connect_timeout", "application_name", nullptr};
    const char* values[] = {url.c_str(), kConnectSecondsMax, "trainyard", nullptr};
    Connected connection(pq().PQconnectdbParams(names, values, 1));  // 1: dbname may be a URL
    if (!connection) return exhausted("no memory for a connection");
    if (pq().PQstatus(connection.get()) != CONNECTION_OK)
      return unavailable("the catalogue: " + message_of(pq().PQerrorMessage(connection.get())));
    pq().PQsetNoticeProcessor(
        connection.get(), [](void*, const char*) {}, nullptr);
    pq().PQsetClientEncoding(connection.get(), "UTF8");
    TRY(run(connection.get(),
            "SET statement_timeout = " + std::to_string(kStatementTimeMax / 1ms)));
    const Answer powerful =
        TRY(run(connection.get(), kIsPowerful).in("querying the role's rights"));
    if (pq().PQntuples(powerful.get()) != 1 ||
        std::string_view(pq().PQgetvalue(powerful.get(), 0, 0)) != "f")
      return denied(
          "the catalogue's role is a superuser, may make roles, or may reach files or programs of "
          "the database's machine: give [catalogue] a role that owns the catalogue and nothing "
          "else");
    return connection;
  }

  Result<Connected> connect() {
    Connected connection = TRY(connect_to(url_));
    const MutexLock lock(mutex_);
    if (!prepared_) {
      TRY(run(connection.get(), kCatalogueSchema).in("making the catalogue's tables"));
      prepared_ = true;
    }
    return connection;
  }

  // Creates the permanent tables. The role of queries need not have that right.
  Result<void> prepare() {
    {
      const MutexLock lock(mutex_);
      if (prepared_) return {};
    }
    const Connected made = TRY(connect());
    return {};
  }

  static Result<void> provide(PGconn* connection, const Provided& table) {
    std::string columns = join(table.columns, ", ");
    TRY(run(connection, "CREATE TEMP TABLE " + table.name + " (" + columns + ") ON COMMIT DROP"));
    const std::string insert = "INSERT INTO pg_temp." + table.name + " VALUES (" +
                               placeholders(table.columns.size()) + ")";
    for (const auto& row : table.rows) TRY(run(connection, insert, row));
    return {};
  }

  // Reads row by row and checks the limits after each: libpq would buffer any number of rows.
  static Result<QueryResult> read_all(PGconn* connection) {
    if (!pq().PQsendQuery(connection, "FETCH ALL FROM answer") ||
        !pq().PQsetSingleRowMode(connection))
      return error_of(connection, nullptr);
    QueryResult query_result;
    size_t bytes = 0;
    while (const Answer result{pq().PQgetResult(connection)}) {
      const auto status = pq().PQresultStatus(result.get());
      if (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK)
        return error_of(connection, result.get());
      const int columns = pq().PQnfields(result.get());
      if (columns == 0) return invalid("a query must read, and answer with rows");
      if (query_result.columns.empty())
        for (int i = 0; i < columns; ++i)
          query_result.columns.emplace_back(pq().PQfname(result.get(), i));
      for (int row = 0; row < pq().PQntuples(result.get()); ++row) {
        auto& values = query_result.rows.emplace_back();
        for (int i = 0; i < columns; ++i) {
          values.push_back(value_at(result.get(), row, i));
          bytes += kCellBytes + size_t(pq().PQgetlength(result.get(), row, i));
        }
        TRY(check_answer(query_result.rows.size(), bytes));
      }
    }
    return query_result;
  }

  const std::string url_, query_url_;
  Mutex mutex_;
  bool prepared_ GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<Catalogue> open_postgres_catalogue(const std::string& url,
                                                   const std::string& query_url) {
  return std::make_unique<PostgresCatalogue>(url, query_url);
}

}  // namespace trainyard::campaign
