#include "file_systems/file_systems.hpp"

#include <algorithm>

#include "file_systems/content.hpp"

namespace trainyard::file_systems {

Result<void> FileSystems::change(const std::function<Result<void>(Snapshot&)>& edit) {
  TRY(store_.change(edit));
  wake();
  return {};
}

domain::FileSystems FileSystems::of_region(const std::string& region) const {
  domain::FileSystems all;
  const auto present = snapshot();
  for (const auto& [key, each] : present->file_systems) {
    if (region_of(key) != region) continue;
    domain::FileSystem shown;
    shown.directory = files_directory(settings_.root, each.id);
    shown.type = "FSxLustre";
    shown.mount_name = each.mount_name;
    if (each.lifecycle != Lifecycle::available)
      shown.not_available = std::string(kLifecycles.text(each.lifecycle));
    all[each.id] = std::move(shown);
  }
  return all;
}

JobsOn FileSystems::jobs_on(const std::string& key) const {
  const std::string region = region_of(key), id = key.substr(region.size() + 1);
  JobsOn counts;
  for (const auto& job : control_.live_jobs()) {
    if (job->key.region != region ||
        std::ranges::none_of(job->spec.channels, [&](const domain::Channel& channel) {
          return channel.file_system && channel.file_system->id == id;
        }))
      continue;
    ++(job->finished() ? counts.finished : counts.unfinished);
  }
  return counts;
}

std::shared_ptr<const Progress> FileSystems::progress(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = progress_.find(key);
  return found == progress_.end() ? nullptr : found->second;
}

void FileSystems::set_progress(const std::string& key, std::shared_ptr<const Progress> progress) {
  const MutexLock lock(mutex_);
  if (progress)
    progress_[key] = std::move(progress);
  else
    progress_.erase(key);
}

void FileSystems::wake() {
  {
    const MutexLock lock(mutex_);
    due_ = true;
  }
  changed_.notify_all();
}

void FileSystems::wait(Duration at_most) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, at_most, [this]() REQUIRES(mutex_) { return due_; });
  due_ = false;
}

}  // namespace trainyard::file_systems
