// A SQLite file for rows at rest: WAL, synchronous FULL, one commit for all that arrives together.
//
// Threads: Database is callable from anywhere. A Connection is confined to the function that it was handed to.
// Errors: those of sqlite/connection.hpp.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::observe {

using sqlite::Connection;
using sqlite::Statement;

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
