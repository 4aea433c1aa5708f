#include "objects/directory/names.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>

#include "base/thread_safety.hpp"
#include "objects/directory/key_path.hpp"

namespace trainyard::objects {
namespace {

// Calls `each` with every name that the key tree uses (kinds 'o' object, 'd' directory, 'c'
// continued segment: key_path.hpp), until it returns false. A missing directory has no names.
template <class Each>
Result<void> for_each_name(const std::string& path, Each each) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) {
    if (errno == ENOENT) return ok();
    return from_errno("listing " + path);
  }
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(directory.get());
    if (!entry) break;
    const char kind = entry->d_name[0];
    if ((kind == 'o' || kind == 'd' || kind == 'c') && !each(std::string_view(entry->d_name)))
      return ok();
  }
  if (errno != 0) return from_errno("listing " + path);
  return ok();
}

}  // namespace

Names::Names(const std::vector<std::string>& key_bytes) {
  std::vector<const std::string*> ordered;
  ordered.reserve(key_bytes.size());
  size_t total = 0;
  for (const auto& name : key_bytes) {
    ordered.push_back(&name);
    total += name.size();
  }
  std::sort(ordered.begin(), ordered.end(),
            [](const std::string* a, const std::string* b) { return *a < *b; });
  bytes_.reserve(total);
  ends_.reserve(ordered.size());
  for (const std::string* name : ordered) {
    bytes_ += *name;
    ends_.push_back(uint32_t(bytes_.size()));
  }
}

std::string_view Names::operator[](size_t at) const {
  const size_t begin = at == 0 ? 0 : ends_[at - 1];
  return std::string_view(bytes_).substr(begin, ends_[at] - begin);
}

size_t Names::position(std::string_view bound) const {
  size_t low = 0, high = size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if ((*this)[middle] < bound)
      low = middle + 1;
    else
      high = middle;
  }
  // The previous name may be a directory whose keys start with the same bytes as the bound.
  if (low > 0 && is_inner((*this)[low - 1]) && bound.starts_with((*this)[low - 1])) --low;
  return low;
}

Result<std::shared_ptr<const Names>> NamesCache::read(const std::string& path) {
  std::list<Reading>::iterator reading;
  {
    MutexLock lock(mutex_);
    const auto found = cache_.find(path);
    if (found != cache_.end()) return found->second;
    reading = readings_.insert(readings_.end(), Reading{&path});
  }
  std::vector<std::string> all;
  const auto read = for_each_name(path, [&](std::string_view name) {
    all.push_back(key_bytes_of(name));
    return true;
  });
  std::shared_ptr<const Names> names;
  if (read) names = std::make_shared<Names>(all);

  MutexLock lock(mutex_);
  const bool usable = read && !reading->changed && !cache_.contains(path);
  readings_.erase(reading);
  if (!read) return read.error();
  const size_t bytes = names->memory_bytes() + path.size();
  if (usable && names->size() >= kNamesWorthCachingMin && bytes <= kMemoryBytesMax) {
    if (cached_bytes_ + bytes > kMemoryBytesMax) {
      cache_.clear();
      cached_bytes_ = 0;
    }
    cache_[path] = names;
    cached_bytes_ += bytes;
  }
  return names;
}

void NamesCache::changed(const std::string& path) {
  MutexLock lock(mutex_);
  for (auto& reading : readings_)
    if (*reading.path == path) reading.changed = true;
  const auto found = cache_.find(path);
  if (found == cache_.end()) return;
  cached_bytes_ -= found->second->memory_bytes() + path.size();
  cache_.erase(found);
}

Result<bool> holds_object(const std::string& path) {
  bool found = false;
  std::vector<std::string> inner;
  TRY(for_each_name(path, [&](std::string_view name) {
    found = name.starts_with('o');
    if (!found) inner.emplace_back(name);
    return !found;
  }));
  // Removing an object also removes directories that become empty, so the first directory nearly
  // always contains an object.
  for (size_t i = 0; !found && i < inner.size(); ++i)
    found = TRY(holds_object(path + "/" + inner[i]));
  return found;
}

}  // namespace trainyard::objects
