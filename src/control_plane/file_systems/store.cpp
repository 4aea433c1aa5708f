#include "file_systems/store.hpp"

#include <future>
#include <utility>

#include "base/log.hpp"

namespace trainyard::file_systems {
namespace {

// The retries of one change after commits by other writers of records.
constexpr int kConflictsMax = 10;

Result<void> commit(control::Control& control, control::RecordsRequest request) {
  auto promise = std::make_shared<std::promise<Result<std::shared_ptr<const domain::Records>>>>();
  auto answered = promise->get_future();
  control.change_records(std::move(request),
                         [promise](auto answer) { promise->set_value(std::move(answer)); });
  TRY(answered.get());
  return {};
}

}  // namespace

std::shared_ptr<const Snapshot> FileSystemStore::snapshot() const {
  auto records = control_.records();
  {
    const MutexLock lock(mutex_);
    if (joined_ && records_ == records) return joined_;
  }
  auto joined = join(*records);
  const MutexLock lock(mutex_);
  // Another thread may have joined newer records.
  if (!records_ || records_->version <= records->version) {
    records_ = std::move(records);
    joined_ = joined;
  }
  return joined;
}

std::shared_ptr<const Snapshot> FileSystemStore::join(const domain::Records& records) const {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->version = records.version;
  for (const std::string_view kind : {kFileSystemRecord, kAssociationRecord, kTaskRecord})
    for (auto at = records.all.lower_bound({std::string(kind), ""});
         at != records.all.end() && at->first.first == kind; ++at) {
      const auto added = add_record(*snapshot, at->first, at->second->document);
      if (added) continue;
      const MutexLock lock(mutex_);
      if (set_aside_.insert(at->first).second)
        log(Level::error, "file_systems", "a record of FSx was set aside",
            {{"record", at->first.first + "/" + at->first.second}, {"why", added.error().message}});
    }
  return snapshot;
}

Result<void> FileSystemStore::change(const std::function<Result<void>(Snapshot&)>& edit) {
  const MutexLock exclusive(changing_);
  for (int conflicts = 0;; ++conflicts) {
    const auto records = control_.records();
    const auto before = join(*records);
    Snapshot after = *before;
    TRY(edit(after));
    control::RecordsRequest request;
    request.expected = records->version;
    request.writes = difference(*before, after);
    if (request.writes.empty()) return {};
    const auto committed = commit(control_, std::move(request));
    if (committed) return {};
    if (committed.error().kind != Kind::conflict) return committed.error();
    if (conflicts == kConflictsMax)
      return unavailable("other requests keep changing the records of file systems: try again");
  }
}

}  // namespace trainyard::file_systems
