// SQLite behind Results: a connection, its prepared statements, a row at a time. Private to this room.
//
// Threads: a Connection and its Statements are confined to one thread at a time.
// Errors:  exhausted (disk full), unavailable (locked), denied, corrupt, conflict (a constraint), internal.
// Lifetime: a Statement is borrowed from its Connection and is reset when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace trainyard::ledger {

class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement, bool kept)
      : database_(database), statement_(statement), kept_(kept) {}
  Statement(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  ~Statement();

  // Parameters are bound in the order of the calls.
  Statement& bind(int64_t value);
  Statement& bind(std::string_view value);
  // True while there is a row.
  Result<bool> step();
  // For statements without rows.
  Result<void> run();
  int64_t integer(int column) const;
  std::string text(int column) const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
  bool kept_;  // by its connection, for the next time
  int bound_ = 0;
};

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const std::string& path);
  ~Connection();
  Connection(const Connection&) = delete;

  // Prepared once for each text, and kept. Requires: the texts are few.
  Result<Statement> prepare(const std::string& sql);
  // For texts that depend on the question.
  Result<Statement> prepare_once(const std::string& sql);
  Result<void> run(const std::string& sql);
  Result<int64_t> integer(const std::string& sql);
  // Rows that the last statement changed.
  int64_t changes() const;

 private:
  explicit Connection(sqlite3* database) : database_(database) {}
  sqlite3* database_;
  std::map<std::string, sqlite3_stmt*, std::less<>> prepared_;
};

}  // namespace trainyard::ledger
