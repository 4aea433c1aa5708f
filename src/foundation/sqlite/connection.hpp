// Wraps SQLite with Results: a connection, its prepared statements, one row at a time.
//
// Threads: a Connection and its Statements are confined to one thread at a time.
// Errors:  exhausted (disk full), unavailable (locked), denied, not_found (no such file), corrupt,
//          conflict (a
// constraint), internal (our SQL is wrong).
// Lifetime: a Statement is borrowed from its Connection and is reset when it ends.
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

  // Parameters are bound in the order of the calls.
  Statement& bind(int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  // A BLOB: any bytes, compared as bytes. Lifetime: until the last step().
  Statement& bind_bytes(std::string_view bytes);
  Statement& bind_nothing();
  // Moves to the next row; true while there is one.
  Result<bool> step();
  // For statements without rows.
  Result<void> run();
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string bytes(int column) const;
  bool empty(int column) const;  // NULL
  // For untrusted statements: the number of columns, their names, and the type of a value in the
  // present row.
  int columns() const;
  std::string column_name(int column) const;
  enum class Holds { nothing, integer, real, text, bytes };
  Holds holds(int column) const;
  // True if it leaves the database unchanged.
  bool reads_only() const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
  bool kept_;  // by its connection, for the next use
  int bound_ = 0;
};

enum class Access { read_and_write, read };  // the first makes the file when absent

// Limits of untrusted statements.
struct Confinement {
  bool reads_only =
      true;  // no statement changes anything, not even temporary tables; else tables may be changed
  std::function<bool()> may_continue;  // called repeatedly: whether a statement may continue
  // Memory of SQLite while a statement runs, in this process as a whole, since it counts no other
  // way. Sorted and intermediate rows are kept in memory, so this limits them.
  uint64_t memory_bytes_max = uint64_t{256} << 20;
  int value_bytes_max = 1 << 20;      // of a text, a BLOB, a row
  int statement_bytes_max = 1 << 20;  // of its SQL
  int pattern_bytes_max = 100;        // of LIKE and GLOB, whose cost is pattern x text
};

class Connection {
 public:
  // `files` is the name of a FileWatch; "": the operating system's files.
  static Result<std::unique_ptr<Connection>> open(const std::string& path,
                                                  Access access = Access::read_and_write,
                                                  const std::string& files = "");
  ~Connection();
  Connection(const Connection&) = delete;

  // Prepares each text once, and keeps it. Requires: the texts are few, and only one Statement of
  // each is in use.
  Result<Statement> prepare(std::string_view sql);
  // Prepares a text that is used once. Errors also: invalid, for more than one statement.
  Result<Statement> prepare_once(const std::string& sql);
  Result<void> run(const std::string& sql);
  Result<int64_t> integer(const std::string& sql);
  // Confines untrusted statements: from now on none reaches another file (ATTACH, VACUUM INTO,
  // extensions), changes how the database is stored (PRAGMA) or exceeds the limits. Requires:
  // existing temporary tables are in memory. Errors of such statements: denied, cancelled
  // (may_continue, memory).
  void confine(Confinement confinement);
  // Called before each statement of a long-lived confined connection: memory in use before does not
  // count.
  void measure_memory();
  // True if a statement was ended because of memory_bytes_max since then.
  bool took_too_much_memory() const { return took_too_much_memory_; }
  // On a confined connection: whether statements may begin and end transactions. The default is
  // yes.
  void allow_transactions(bool allowed) { transactions_ = allowed; }
  // From now on closing leaves the write-ahead log unchanged, for the next opening to recover: for
  // a database after a failed sync.
  void leave_log();
  // The number of rows that the last statement changed.
  int64_t changes() const;
  int64_t last_row() const;

 private:
  explicit Connection(sqlite3* database) : database_(database) {}
  sqlite3* database_;
  // as SQLite's authorizer
  bool is_allowed(int action, const char* first, const char* second) const;
  bool check_progress();

  Confinement confinement_;
  int64_t memory_bytes_before_ = 0;
  bool took_too_much_memory_ = false, transactions_ = true;
  std::map<std::string, sqlite3_stmt*, std::less<>> prepared_;
};

}  // namespace trainyard::sqlite
