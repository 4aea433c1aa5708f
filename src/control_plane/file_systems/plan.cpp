#include "file_systems/plan.hpp"

#include <algorithm>

namespace trainyard::file_systems {
namespace {

template <class T, class Use>
void for_each_of(const std::map<std::string, T>& all, const std::string& file_system,
                 const Use& use) {
  const size_t slash = file_system.find('/');
  const std::string region = file_system.substr(0, slash);
  const std::string id = file_system.substr(slash + 1);
  for (const auto& [key, each] : all)
    if (each.file_system == id && region_of(key) == region) use(key, each);
}

std::optional<Work> work_of_available(const Snapshot& snapshot, const std::string& key,
                                      const std::map<std::string, Instant>& imported, Instant now) {
  std::optional<Work> work;
  for_each_of(snapshot.associations, key, [&](const auto& subject, const Association& each) {
    if (work) return;
    if (each.lifecycle == Lifecycle::creating) work = Work{WorkKind::link, key, subject};
    if (each.lifecycle == Lifecycle::deleting) work = Work{WorkKind::unlink, key, subject};
  });
  if (work) return work;
  for_each_of(snapshot.tasks, key, [&](const auto& subject, const RepositoryTask& each) {
    if (!work && !is_over(each.state)) work = Work{WorkKind::run_task, key, subject};
  });
  if (work || !imports_automatically(snapshot, key)) return work;
  const auto last = imported.find(key);
  // If the clock was set back, this must not delay the next import.
  if (last != imported.end() && now >= last->second && now < last->second + kAutoImportInterval)
    return std::nullopt;
  return Work{WorkKind::import_changes, key};
}

}  // namespace

bool imports_automatically(const Snapshot& snapshot, const std::string& file_system) {
  const auto found = snapshot.file_systems.find(file_system);
  if (found == snapshot.file_systems.end()) return false;
  bool any = found->second.auto_import != AutoImport::none;
  for_each_of(snapshot.associations, file_system, [&](const auto&, const Association& each) {
    any = any || (each.lifecycle == Lifecycle::available && each.auto_import != AutoImport::none);
  });
  return any;
}

std::vector<Work> plan_work(const Snapshot& snapshot, const std::set<std::string>& busy,
                            const std::map<std::string, Instant>& imported, Instant now) {
  std::vector<Work> begun;
  for (const auto& [key, each] : snapshot.file_systems) {
    if (busy.contains(key)) continue;
    std::optional<Work> work;
    switch (each.lifecycle) {
      case Lifecycle::creating:
        work = Work{WorkKind::fill, key};
        break;
      case Lifecycle::deleting:
        work = Work{WorkKind::remove, key};
        break;
      case Lifecycle::available:
        work = work_of_available(snapshot, key, imported, now);
        break;
      case Lifecycle::failed:
        break;
    }
    if (work) begun.push_back(*std::move(work));
  }
  return begun;
}

bool is_cancelled(const Snapshot& snapshot, const Work& work) {
  const auto owner = snapshot.file_systems.find(work.file_system);
  if (owner == snapshot.file_systems.end()) return true;
  if (work.kind == WorkKind::remove) return false;
  if (owner->second.lifecycle == Lifecycle::deleting) return true;
  if (work.kind == WorkKind::run_task) {
    const auto task = snapshot.tasks.find(work.subject);
    return task == snapshot.tasks.end() || task->second.state == TaskState::canceling;
  }
  if (work.kind == WorkKind::link) {
    const auto link = snapshot.associations.find(work.subject);
    return link == snapshot.associations.end() || link->second.lifecycle == Lifecycle::deleting;
  }
  return false;
}

}  // namespace trainyard::file_systems
