// Wraps SQLite connections and prepared statements with Results. A statement returns one row at a
// time.
//
// Threads:  a Connection and its Statements are confined to one thread at a time.
// Errors:   exhausted (disk full), unavailable (locked), denied, not_found (no such file), corrupt,
//           conflict (a constraint), internal (the SQL is wrong).
// Lifetime: a Connection outlives its Statements. A Statement is reset when it is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace trainyard::sqlite {

class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement, bool kept)
      : database_(database), statement_(statement), kept_(kept) {}
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  ~Statement();

  // Binds the next parameter: parameters are bound in the order of the calls.
  Statement& bind(int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  // Binds a BLOB: any bytes, compared as bytes. Lifetime: `bytes` must live until the last step().
  Statement& bind_bytes(std::string_view bytes);
  Statement& bind_null();
  // Moves to the next row. Returns false if there is none.
  Result<bool> step();
  // Runs a statement that returns no rows.
  Result<void> run();
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string bytes(int column) const;
  bool empty(int column) const;  // true: the value is NULL
  // Describe the result of an untrusted statement: number and names of columns, and the type of a
  // value in the current row.
  int columns() const;
  std::string column_name(int column) const;
  enum class Holds { nothing, integer, real, text, bytes };
  Holds holds(int column) const;
  // Returns true if the statement does not change the database.
  bool reads_only() const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
  bool kept_;  // the connection keeps the prepared statement for later use
  int bound_ = 0;
};

enum class Access { read_and_write, read };  // read_and_write makes the file if it is absent

// The limits of untrusted statements.
struct Confinement {
  // true: no statement may change anything, not even temporary tables; false: tables may be changed
  bool reads_only = true;
  // called repeatedly while a statement runs; if it returns false, the statement is cancelled
  std::function<bool()> may_continue;
  // Memory that SQLite may allocate while a statement runs. SQLite counts its memory only for the
  // whole process. Sorted and intermediate rows are kept in memory, so this limits them too.
  uint64_t memory_bytes_max = uint64_t{256} << 20;
  int value_bytes_max = 1 << 20;      // limit of a text, a BLOB or a row
  int statement_bytes_max = 1 << 20;  // limit of the SQL of a statement
  int pattern_bytes_max = 100;  // limit of patterns of LIKE and GLOB: they cost pattern x text
};

class Connection {
 public:
  // `files` is the name of a FileWatch through which files are accessed; "": they are accessed
  // directly.
  static Result<std::unique_ptr<Connection>> open(const std::string& path,
                                                  Access access = Access::read_and_write,
                                                  const std::string& files = "");
  ~Connection();
  Connection(const Connection&) = delete;

  // Prepares a statement. Each text is prepared once and kept. Requires: the number of texts is
  // small, and only one Statement of each is in use at a time.
  Result<Statement> prepare(std::string_view sql);
  // Prepares a statement that is used once. Errors also: invalid, if the text does not contain
  // exactly one statement.
  Result<Statement> prepare_once(const std::string& sql);
  Result<void> run(const std::string& sql);
  Result<int64_t> integer(const std::string& sql);
  // Confines untrusted statements: from now on no statement can access another file (ATTACH, VACUUM
  // INTO, extensions), change how the database is stored (PRAGMA) or exceed the limits. Requires:
  // existing temporary tables are in memory. Errors of confined statements: denied, cancelled
  // (may_continue, memory).
  void confine(Confinement confinement);
  // Must be called before each statement of a long-lived confined connection: memory that is
  // already in use does not count against the limit.
  void measure_memory();
  // Returns true if a statement was cancelled because of memory_bytes_max since measure_memory().
  bool took_too_much_memory() const { return took_too_much_memory_; }
  // Sets whether statements of a confined connection may begin and end transactions. Default: true.
  void allow_transactions(bool allowed) { transactions_ = allowed; }
  // Makes the destructor leave the write-ahead log unchanged, so that the next opening recovers it.
  // Used after a failed sync.
  void leave_log();
  // Returns the number of rows that the last statement changed.
  int64_t changes() const;
  int64_t last_row() const;

 private:
  explicit Connection(sqlite3* database) : database_(database) {}
  sqlite3* database_;
  // Answers SQLite's authorizer callback.
  bool is_allowed(int action, const char* first, const char* second) const;
  bool check_progress();

  Confinement confinement_;
  int64_t memory_bytes_before_ = 0;
  bool took_too_much_memory_ = false, transactions_ = true;
  std::map<std::string, sqlite3_stmt*, std::less<>> prepared_;
};

}  // namespace trainyard::sqlite
