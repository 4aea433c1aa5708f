// FileSystemStore reads the records of FSx file systems from the ledger's records, and changes
// them.
//
// Threads:  call from anywhere. change() waits for the commit, so it must not run on the thread
// that
//           commits.
// Errors:   of change(): those of the change, and control's.
// Lifetime: control outlives it.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "base/thread_safety.hpp"
#include "control/control.hpp"
#include "file_systems/record.hpp"

namespace trainyard::file_systems {

class FileSystemStore {
 public:
  explicit FileSystemStore(control::Control& control) : control_(control) {}

  // Returns the current records; never nullptr.
  std::shared_ptr<const Snapshot> snapshot() const;

  // Calls `edit` with a copy of the snapshot and makes the result durable. Repeats both if another
  // writer changes records meanwhile.
  Result<void> change(const std::function<Result<void>(Snapshot&)>& edit);

 private:
  std::shared_ptr<const Snapshot> join(const domain::Records& records) const;

  control::Control& control_;
  Mutex changing_;  // held by one change() at a time
  mutable Mutex mutex_;
  mutable std::shared_ptr<const domain::Records> records_ GUARDED_BY(mutex_);
  mutable std::shared_ptr<const Snapshot> joined_ GUARDED_BY(mutex_);
  // Invalid records, each of which is logged once.
  mutable std::set<domain::RecordKey> set_aside_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::file_systems
