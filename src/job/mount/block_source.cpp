#include "mount/block_source.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/watched_time.hpp"
#include "objects/verifier.hpp"

namespace trainyard::mount {
namespace {

// The number of threads that fetch ahead, and the limit of blocks that wait for one of them. Blocks
// beyond it are dropped; a later read fetches them.
constexpr size_t kAheadThreads = 4;
constexpr size_t kAheadMax = 64;
constexpr Duration kPause = 500ms;
// The pause of warming before each piece while reads fetch. A read of the same block, in this
// process or another, then waits for at most 16 pauses.
constexpr Duration kYield = 100ms;
constexpr size_t kWarmedPieceBytes = 256 << 10;
// The interval of checks while another process fetches a block.
constexpr Duration kLockPauseMin = 1ms, kLockPauseMax = 50ms;

std::string name_of(const MountedObject& object) {
  return "s3://" + object.bucket + "/" + shorten(to_utf8(object.key), 200);
}

Error replaced(const MountedObject& object, const std::string& etag) {
  return conflict("the object was replaced since the job listed it (ETag " + object.etag +
                  ", now " + shorten(etag, 80) + ")");
}

}  // namespace

cache::BlockId block_id(const std::string& endpoint, const MountedObject& object, uint64_t number) {
  return {endpoint, object.bucket, object.key, object.etag, number};
}

std::vector<cache::PinnedBlock> blocks_of(const std::string& endpoint,
                                          const std::vector<MountedObject>& objects) {
  std::vector<cache::PinnedBlock> blocks;
  for (const auto& object : objects)
    for (uint64_t first = 0; first < object.bytes && blocks.size() < cache::kPinBlocksMax;
         first += cache::kBlockBytes) {
      const auto id = block_id(endpoint, object, first / cache::kBlockBytes);
      const uint64_t bytes = std::min(cache::kBlockBytes, object.bytes - first);
      blocks.push_back({cache::hash_of(id), uint32_t(cache::file_bytes_of(id, bytes))});
    }
  return blocks;
}

BlockSource::BlockSource(objects::Objects& objects, cache::BlockCache* cache, Clock& clock,
                         SourceSettings settings, Say say)
    : objects_(objects),
      cache_(cache),
      clock_(clock),
      settings_(std::move(settings)),
      say_(std::move(say)) {
  for (size_t i = 0; i < kAheadThreads; ++i) threads_.emplace_back([this] { work_ahead(); });
}

BlockSource::~BlockSource() {
  stop();
  for (auto& thread : threads_) thread.join();
}

void BlockSource::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

bool BlockSource::stopped() {
  const MutexLock lock(mutex_);
  return stopped_;
}

Result<BlockSource::Block> BlockSource::get(const MountedObject& object, uint64_t number) {
  const Key key(&object, number);
  {
    MutexLock lock(mutex_);
    for (;;) {
      if (stopped_) return cancelled("the job has ended");
      const auto found = blocks_.find(key);
      if (found == blocks_.end()) break;
      if (found->second.block) {
        by_use_.splice(by_use_.begin(), by_use_, found->second.use);
        return found->second.block;
      }
      changed_.wait(lock);
    }
    blocks_.emplace(key, Entry{nullptr, by_use_.end()});
  }
  auto loaded = load(object, number);
  {
    const MutexLock lock(mutex_);
    if (loaded)
      keep(key, *loaded);
    else
      blocks_.erase(key);
  }
  changed_.notify_all();
  return loaded;
}

void BlockSource::keep(const Key& key, Block block) {
  by_use_.push_front(key);
  auto& entry = blocks_[key];
  entry.block = std::move(block);
  entry.use = by_use_.begin();
  while (by_use_.size() > settings_.blocks_in_memory_max) {
    blocks_.erase(by_use_.back());
    by_use_.pop_back();
  }
}

void BlockSource::fetch_ahead(const MountedObject& object, uint64_t number) {
  {
    const MutexLock lock(mutex_);
    const Key key(&object, number);
    if (ahead_.size() >= kAheadMax || blocks_.contains(key)) return;
    ahead_.push_back(key);
  }
  changed_.notify_all();
}

void BlockSource::work_ahead() {
  for (;;) {
    Key key;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [&]() REQUIRES(mutex_) { return stopped_ || !ahead_.empty(); });
      if (stopped_) return;
      key = ahead_.front();
      ahead_.pop_front();
    }
    // Ignores the error: a read that needs the block reports it.
    (void)get(*key.first, key.second);
  }
}

Result<BlockSource::Block> BlockSource::load(const MountedObject& object, uint64_t number) {
  const uint64_t bytes = std::min(cache::kBlockBytes, object.bytes - number * cache::kBlockBytes);
  const auto id = block_id(settings_.endpoint, object, number);
  Fetched fetched;
  if (auto found = TRY(cached(id, bytes)))
    fetched = {*std::move(found), true};
  else
    fetched = TRY(retry<Fetched>(
        object, [&] { return fetch_once(object, id, bytes, Urgency::read); }, Urgency::read));
  if (fetched.from_cache) TRY(authorize(object));
  if (fetched.from_cache) cached_bytes_ += bytes;
  return Block(std::make_shared<const std::string>(std::move(fetched.content)));
}

// Reads a block from the cache. A cache that cannot be read counts as empty.
Result<std::optional<std::string>> BlockSource::cached(const cache::BlockId& id, uint64_t bytes) {
  if (cache_ == nullptr) return std::optional<std::string>();
  auto found = cache_->get(id);
  if (!found || !*found || (*found)->size() != bytes) return std::optional<std::string>();
  return *std::move(found);
}

// Fetches a block while holding its lock. The lock is held for one request only, so that a process
// that retries does not delay others, which may have other rights.
Result<BlockSource::Fetched> BlockSource::fetch_once(const MountedObject& object,
                                                     const cache::BlockId& id, uint64_t bytes,
                                                     Urgency urgency) {
  const auto lock = TRY(wait_for_others(id, bytes));
  if (auto found = TRY(cached(id, bytes))) return Fetched{*std::move(found), true};
  auto content = TRY(objects::repeat_if_damaged(
      [&] { return fetch(object, id.number * cache::kBlockBytes, bytes, urgency); }));
  if (cache_ != nullptr) put_in_cache(id, content);
  return Fetched{std::move(content), false};
}

// Waits for the block's lock. nullopt: the caller must fetch the block without the lock.
Result<std::optional<cache::FetchLock>> BlockSource::wait_for_others(const cache::BlockId& id,
                                                                     uint64_t bytes) {
  if (cache_ == nullptr || !cache_->keeps(bytes)) return std::optional<cache::FetchLock>();
  auto lock = cache_->fetch_lock(id);
  if (!lock) return std::optional<cache::FetchLock>();
  WatchedTime time(clock_, settings_.other_fetch_max / 4);
  const auto since = time.now();
  for (Duration pause = kLockPauseMin;; pause = std::min(2 * pause, kLockPauseMax)) {
    const auto taken = lock->try_take();
    if (taken && *taken) return std::optional(*std::move(lock));
    if (!taken || time.now() - since >= settings_.other_fetch_max)
      return std::optional<cache::FetchLock>();
    if (stopped_after(pause)) return cancelled("the job has ended");
  }
}

void BlockSource::put_in_cache(const cache::BlockId& id, const std::string& content) {
  const auto kept = cache_->put(id, content);
  if (kept) return;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(cache_failed_, true)) return;
  }
  say_("the machine's cache cannot keep blocks: " + kept.error().message);
}

bool BlockSource::stopped_after(Duration pause) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, pause, [&]() REQUIRES(mutex_) { return stopped_; });
  return stopped_;
}

template <class T>
Result<T> BlockSource::retry(const MountedObject& object, const std::function<Result<T>()>& attempt,
                             Urgency urgency) {
  WatchedTime time(clock_, settings_.outage_max / 4);
  const auto since = time.now();
  for (bool said = urgency == Urgency::warm;;) {
    auto done = attempt();
    if (done) return done;
    const Kind kind = done.error().kind;
    const Duration limit = kind == Kind::unavailable ? settings_.outage_max
                           : kind == Kind::denied    ? settings_.renewed_keys_max
                                                     : Duration(0);
    if (time.now() - since >= limit) return done;
    if (!said && kind == Kind::unavailable)
      say_("the object store is unavailable: " + done.error().message + "; retrying (reading " +
           name_of(object) + ")");
    said = said || kind == Kind::unavailable;
    if (stopped_after(kPause)) return cancelled("the job has ended");
  }
}

Result<bool> BlockSource::warm(const MountedObject& object, uint64_t number) {
  const uint64_t bytes = std::min(cache::kBlockBytes, object.bytes - number * cache::kBlockBytes);
  const auto id = block_id(settings_.endpoint, object, number);
  if (cache_ == nullptr || !cache_->keeps(bytes)) return false;
  if (cache_->has(id)) return true;
  TRY(retry<Fetched>(
      object, [&] { return fetch_once(object, id, bytes, Urgency::warm); }, Urgency::warm));
  return true;
}

BlockSource::FetchingRead::FetchingRead(BlockSource& source, Urgency urgency)
    : source_(source), is_read_(urgency == Urgency::read) {
  if (!is_read_) return;
  const MutexLock lock(source_.mutex_);
  ++source_.fetching_reads_;
}

BlockSource::FetchingRead::~FetchingRead() {
  if (!is_read_) return;
  {
    const MutexLock lock(source_.mutex_);
    --source_.fetching_reads_;
  }
  source_.changed_.notify_all();
}

void BlockSource::wait_for_reads() {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, kYield,
                    [&]() REQUIRES(mutex_) { return stopped_ || fetching_reads_ == 0; });
}

Result<size_t> BlockSource::fetch_some(objects::Reader& reader, std::span<char> rest,
                                       Urgency urgency) {
  if (urgency == Urgency::read) return reader.read(rest);
  wait_for_reads();
  return reader.read(rest.first(std::min(rest.size(), kWarmedPieceBytes)));
}

Result<std::string> BlockSource::fetch(const MountedObject& object, uint64_t first, uint64_t bytes,
                                       Urgency urgency) {
  const FetchingRead fetching(*this, urgency);
  // A reader compares whole objects with their checksums, but not ranges.
  const bool whole = bytes == object.bytes;
  const objects::Range range{first, first + bytes - 1, {}, {}};
  const auto reader =
      TRY(objects_.get(object.bucket, object.key, whole ? std::nullopt : std::optional(range)));
  if (reader->info().etag != object.etag) return replaced(object, reader->info().etag);
  std::string content(bytes, '\0');
  size_t filled = 0;
  while (filled < bytes) {
    if (stopped()) return cancelled("the job has ended");
    const size_t got = TRY(fetch_some(*reader, std::span(content).subspan(filled), urgency));
    if (got == 0)
      return corrupt("the object ended after " + std::to_string(first + filled) + " of " +
                     std::to_string(object.bytes) + " bytes");
    filled += got;
  }
  fetched_bytes_ += bytes;
  const MutexLock lock(mutex_);
  authorized_.insert(&object);
  return content;
}

// Checks that the store allows the job to read the object. Another version in the store is not an
// error: the cache has the pinned version.
Result<void> BlockSource::authorize(const MountedObject& object) {
  {
    const MutexLock lock(mutex_);
    if (authorized_.contains(&object)) return {};
  }
  TRY(retry<objects::ObjectInfo>(
      object, [&] { return objects_.head(object.bucket, object.key); }, Urgency::read));
  const MutexLock lock(mutex_);
  authorized_.insert(&object);
  return {};
}

}  // namespace trainyard::mount
