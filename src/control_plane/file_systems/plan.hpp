// Decides which work on file systems begins now: filling, removing, linking, tasks and automatic
// imports. At most one piece of work on a file system runs at a time.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "file_systems/record.hpp"

namespace trainyard::file_systems {

enum class WorkKind { fill, remove, link, unlink, run_task, import_changes };
inline constexpr EnumTable<WorkKind> kWorkKinds{"work",
                                                {{WorkKind::fill, "fill"},
                                                 {WorkKind::remove, "remove"},
                                                 {WorkKind::link, "link"},
                                                 {WorkKind::unlink, "unlink"},
                                                 {WorkKind::run_task, "run a task"},
                                                 {WorkKind::import_changes, "import changes"}}};

struct Work {
  WorkKind kind = WorkKind::fill;
  std::string file_system;   // key
  std::string subject = {};  // key of the association or task; otherwise ""
  bool operator==(const Work&) const = default;
};

// The time between automatic imports of a file system. AWS gets notifications of changes; this
// server lists the prefix again.
inline constexpr Duration kAutoImportInterval = 60s;

// Returns the work to begin, by file system. `busy` has the file systems with running work,
// `imported` the begin of the last automatic import of each.
std::vector<Work> plan_work(const Snapshot& snapshot, const std::set<std::string>& busy,
                            const std::map<std::string, Instant>& imported, Instant now);

// Returns true if running work must end, since the file system is being deleted or the task is
// being cancelled.
bool is_cancelled(const Snapshot& snapshot, const Work& work);

// Returns true if the file system has automatic imports.
bool imports_automatically(const Snapshot& snapshot, const std::string& file_system);

}  // namespace trainyard::file_systems
