// Database is a SQLite file (WAL, synchronous FULL) in which concurrent writes share one commit.
//
// Threads: Database is callable from anywhere. A Connection is confined to the function that
// receives it.
// Errors: those of sqlite/connection.hpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "sqlite/connection.hpp"

namespace trainyard::observe {

using sqlite::Connection;
using sqlite::Statement;

class Database {
 public:
  // Creates the file with `schema` (CREATE .. IF NOT EXISTS) if it is missing. `files` is the name
  // of a sqlite::FileWatch; "": the operating system's files.
  // Errors also: corrupt, if a newer version wrote it.
  static Result<std::unique_ptr<Database>> open(const std::string& path, int version,
                                                const std::string& schema,
                                                const std::string& files = "");

  // Runs `work` in a transaction, and returns when the transaction is durable. Concurrent calls
  // share a transaction. An error of `work` undoes only its changes, and is returned to its caller.
  //
  // `committed` is called when the changes of `work` are durable, in the order of the works and
  // before the next transaction begins. It can update memory, and must return soon.
  using Work = std::function<Result<void>(Connection&)>;
  Result<void> write(Work work, std::function<void()> committed = nullptr);

  // Makes the destructor leave the write-ahead log unchanged, so that the next open() recovers from
  // it. Used after a failed sync. Requires: no write is in progress.
  void leave_log();

  // Runs `work` on a snapshot of the last committed state. Reads do not wait for writes.
  Result<void> read(const Work& work);

 private:
  Database() = default;

  struct Pending {
    Work work;
    std::function<void()> committed;
    Result<void> result;
    bool done = false;
  };
  // Runs all works of `group` in one transaction.
  void commit(std::vector<Pending*>& group);

  // Used only by the caller that commits the current group.
  std::unique_ptr<Connection> writer_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Pending*> waiting_ GUARDED_BY(mutex_);  // at most one per calling thread
  bool leading_ GUARDED_BY(mutex_) = false;

  Mutex reader_mutex_;
  std::unique_ptr<Connection> reader_ GUARDED_BY(reader_mutex_);
};

}  // namespace trainyard::observe
