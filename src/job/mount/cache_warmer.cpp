#include "mount/cache_warmer.hpp"

namespace trainyard::mount {
namespace {

// The number of threads, as for copying a channel: enough to fill a link to a store with a latency
// of some milliseconds.
constexpr size_t kWarmThreads = 8;

}  // namespace

CacheWarmer::CacheWarmer(BlockSource& source, const std::vector<MountedObject>& objects)
    : source_(source), objects_(objects) {
  for (size_t i = 0; i < kWarmThreads; ++i) threads_.emplace_back([this] { work(); });
}

CacheWarmer::~CacheWarmer() {
  for (auto& thread : threads_) thread.join();
}

std::optional<CacheWarmer::Position> CacheWarmer::next() {
  const MutexLock lock(mutex_);
  while (next_.object < objects_.size() &&
         next_.block * cache::kBlockBytes >= objects_[next_.object].bytes)
    next_ = {next_.object + 1, 0};
  if (next_.object == objects_.size()) return {};
  return Position{next_.object, next_.block++};
}

void CacheWarmer::work() {
  while (const auto position = next()) {
    const auto kept = source_.warm(objects_[position->object], position->block);
    if (kept ? !*kept : kept.error().kind == Kind::cancelled) return;
  }
}

}  // namespace trainyard::mount
