// Wraps connections to a PostgreSQL server with Results. Supports prepared statements, several
// statements in one round trip, and a time limit for each wait.
//
//   auto connection = TRY(Connection::open({.url = "postgresql://ledger@db.lan/ledger"}));
//   const Rows rows = TRY(connection->run({"SELECT name FROM jobs WHERE number = $1", {int64_t(7)}}));
//
// Threads: a Connection is confined to one thread at a time.
// Errors:  unavailable (lost, no answer in time, refused), denied (role, password), not_found (no
//          such database or table), conflict (a constraint), exhausted (disk, memory, connections),
//          invalid (a text with a NUL byte), corrupt, internal (the SQL is wrong). The detail is a
//          Fault if callers must distinguish errors of one kind.
// Lifetime: Rows may outlive their Connection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

struct pg_conn;
struct pg_result;

namespace trainyard::postgres {

enum class Fault {
  lost,  // the connection was lost; a statement in progress may or may not have been carried out
  lock,  // lock_timeout passed
  no_table,  // a table or schema does not exist
};

// A parameter of a statement; nullptr: NULL.
using Value = std::variant<std::nullptr_t, int64_t, double, std::string>;

// One statement with its parameters, $1 and so on.
struct Query {
  std::string sql;
  std::vector<Value> values = {};
};

// The rows of a statement.
class Rows {
 public:
  explicit Rows(pg_result* result) : result_(result) {}

  size_t count() const;
  int columns() const;
  bool empty(size_t row, int column) const;  // true: the value is NULL
  // Return 0 for NULL. Require: the column has this type.
  int64_t integer(size_t row, int column) const;
  double real(size_t row, int column) const;
  std::string text(size_t row, int column) const;
  // The number of rows that the statement inserted, updated, deleted or selected.
  int64_t changed() const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

struct ConnectionSettings {
  std::string url;            // "postgresql://user@host:5432/name", or "host=.. dbname=.."
  std::string password = {};  // "": from the URL, PGPASSWORD or the password file
  std::string application = "trainyard";
  // If the server sends no byte within this time, the connection counts as lost. While a connection
  // is opened, the limit applies to each host of the URL.
  Duration answer_timeout = 10s;
};

class Connection {
 public:
  // Tries the hosts of the URL one after the other, until one answers.
  static Result<std::unique_ptr<Connection>> open(const ConnectionSettings& settings);
  ~Connection();
  Connection(const Connection&) = delete;

  // Runs one statement. Its text is prepared once and kept. Requires: the number of texts is small.
  Result<Rows> run(const Query& query);
  // Runs one statement whose text is used once.
  Result<Rows> run_once(const Query& query);
  // Runs several statements without parameters, in one transaction unless they contain BEGIN and
  // COMMIT.
  Result<void> run_script(const std::string& sql);
  // Sends all statements before it reads the first answer. If one fails, those after it are not
  // carried out. Requires: as run().
  Result<std::vector<Rows>> run_together(std::span<const Query> queries);

  // Returns true once a call has failed with Fault::lost. The caller then opens another connection.
  bool lost() const { return lost_; }
  // Changes the time limit of waits.
  void set_answer_timeout(Duration timeout) { answer_timeout_ = timeout; }
  // Describes server and database for messages, without a password: "PostgreSQL database ledger at
  // db.lan:5432".
  const std::string& label() const { return label_; }

 private:
  Connection(pg_conn* connection, const ConnectionSettings& settings);
  static Result<std::unique_ptr<Connection>> open_at(const ConnectionSettings& settings,
                                                     const std::string& host,
                                                     const std::string& address,
                                                     const std::string& port);
  Result<void> establish();
  Result<void> wait(bool to_write);
  Result<void> flush();
  Result<pg_result*> next_result();
  Result<Rows> only_result(int sent);
  Result<std::string> prepare(const std::string& sql);
  Result<std::vector<Rows>> read_all(size_t count);
  Error lose(std::string_view doing);

  pg_conn* connection_;
  Duration answer_timeout_;
  std::string label_;
  bool lost_ = false;
  std::map<std::string, std::string> prepared_;  // text -> name
};

// Describes the server and database of a URL or libpq string, without the password. Errors:
// invalid.
Result<std::string> describe_url(const std::string& url);

}  // namespace trainyard::postgres
