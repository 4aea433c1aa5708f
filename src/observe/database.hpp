// A SQLite file for rows at rest: WAL, synchronous FULL, one commit for all that arrives together.
//
// Threads: Database is callable from anywhere. A Statement is confined to the function that it was handed to.
// Errors: exhausted (disk full), corrupt, unavailable (I/O), internal (our SQL is wrong).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace trainyard::observe {

// A prepared statement with its parameters given; bound from 1 upwards in the order of the calls.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  Statement(Statement&& other) noexcept;
  ~Statement();

  Statement& bind(int64_t number);
  Statement& bind(double number);
  Statement& bind(
      std::string_view bytes);  // as BLOB: any bytes, compared as bytes. Lifetime: until the last step()
  Statement& bind_nothing();

  // True when there is a row.
  Result<bool> step();
  Result<void> run();
  int64_t number(int column) const;
  double real(int column) const;
  std::string bytes(int column) const;
  bool empty(int column) const;  // NULL

 private:
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const std::string& path, bool read_only);
  ~Connection();
  Connection(const Connection&) = delete;

  // Statements are kept by their text, so texts come from a small fixed set. One at a time of the same text.
  Result<Statement> prepare(const char* sql);
  Result<void> execute(const std::string& sql);
  int64_t last_row() const;
  int changes() const;
  Error error(const std::string& doing) const;

 private:
  explicit Connection(sqlite3* handle) : handle_(handle) {}
  sqlite3* handle_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
};

class Database {
 public:
  // Makes the file with `schema` (CREATE .. IF NOT EXISTS) when it is not there.
  // Errors also: corrupt, when it was written by a newer version.
  static Result<std::unique_ptr<Database>> open(const std::string& path, int version,
                                                const std::string& schema);

  // Runs `work` inside a transaction and returns once that is durable. Functions that wait at the same time
  // share one. An error of `work` is its caller's answer, and undoes what it did, only.
  using Work = std::function<Result<void>(Connection&)>;
  Result<void> write(Work work);

  // Sees what was committed before. Reads do not wait for writes.
  Result<void> read(const Work& work);

 private:
  Database() = default;

  struct Pending {
    Work work;
    Result<void> result;
    bool done = false;
  };
  // Runs all of `group` in one transaction.
  void commit(std::vector<Pending*>& group);

  // Confined to the one caller that leads the present group.
  std::unique_ptr<Connection> writer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Pending*> waiting_;  // guarded by mutex_; as long as there are threads that call
  bool leading_ = false;           // guarded by mutex_

  std::mutex reader_mutex_;
  std::unique_ptr<Connection> reader_;  // guarded by reader_mutex_
};

}  // namespace trainyard::observe
