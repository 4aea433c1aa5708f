// Provides blocks of objects: from memory, from the machine's cache, or from the object store.
//
// A block belongs to the version that was listed: if the store has another version, the read fails,
// so that versions are never mixed. A block is fetched once for all threads, and for all processes
// of the machine that share the cache. The cache has objects of all jobs; before a job gets the
// first block of an object from it, the store must have allowed the job to read that object.
//
// If the store is unavailable, a read waits, and a line in the job's log says so. While reads
// fetch, warming slows down but does not stop.
//
// Threads: callable from anywhere; its own threads fetch ahead. stop() ends all waits.
// Errors: unavailable: the store, for longer than outage_max; conflict: the object was replaced;
// not_found, denied; cancelled: stopped.
// Lifetime: the objects, cache and clock outlive it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "cache/block_cache.hpp"
#include "mount/name_tree.hpp"
#include "objects/objects.hpp"

namespace trainyard::mount {

struct SourceSettings {
  std::string endpoint;              // a part of a block's identity
  size_t blocks_in_memory_max = 64;  // kBlockBytes each
  Duration outage_max = 10min;       // longer than a restart of the server
  // For this time a refusal is treated as expired keys: a restarted server sends new ones within
  // it.
  Duration renewed_keys_max = 10s;
  // The longest wait for another process that fetches the same block, since that process may be
  // stopped; then the read fetches the block itself.
  Duration other_fetch_max = 60s;
};

// The bytes of blocks that were used, by origin. A block counts each time it is fetched or read
// from the cache.
struct SourceCounts {
  uint64_t fetched_bytes = 0, cached_bytes = 0;
};

cache::BlockId block_id(const std::string& endpoint, const MountedObject& object, uint64_t number);
// Returns the blocks of all objects, in their order, for a pin; at most kPinBlocksMax.
std::vector<cache::PinnedBlock> blocks_of(const std::string& endpoint,
                                          const std::vector<MountedObject>& objects);

class BlockSource {
 public:
  using Block = std::shared_ptr<const std::string>;
  using Say = std::function<void(const std::string&)>;

  // `cache` may be nullptr: no cache.
  BlockSource(objects::Objects& objects, cache::BlockCache* cache, Clock& clock,
              SourceSettings settings, Say say);
  ~BlockSource();

  Result<Block> get(const MountedObject& object, uint64_t number);
  // Fetches a block if a thread is available for it soon. Requires: the object outlives this
  // source.
  void fetch_ahead(const MountedObject& object, uint64_t number);
  // Fetches a block into the cache, unless it is there; returns false if the cache keeps no more
  // blocks. Retries as reads do, but does not report an unavailable store. Requires: as above.
  Result<bool> warm(const MountedObject& object, uint64_t number);
  SourceCounts counts() const { return {fetched_bytes_, cached_bytes_}; }
  void stop();

 private:
  enum class Urgency { read, warm };
  // FetchingRead counts as a read that fetches, for its lifetime.
  class FetchingRead {
   public:
    FetchingRead(BlockSource& source, Urgency urgency);
    ~FetchingRead();
    FetchingRead(const FetchingRead&) = delete;

   private:
    BlockSource& source_;
    const bool is_read_;
  };

  using Key = std::pair<const MountedObject*, uint64_t>;
  struct Entry {
    Block block;  // nullptr: being fetched
    std::list<Key>::iterator use;
  };

  Result<Block> load(const MountedObject& object, uint64_t number);
  struct Fetched {
    std::string content;
    bool from_cache = false;  // another process fetched it
  };
  Result<std::optional<std::string>> cached(const cache::BlockId& id, uint64_t bytes);
  Result<std::optional<cache::FetchLock>> wait_for_others(const cache::BlockId& id, uint64_t bytes);
  Result<Fetched> fetch_once(const MountedObject& object, const cache::BlockId& id, uint64_t bytes,
                             Urgency urgency);
  Result<std::string> fetch(const MountedObject& object, uint64_t first, uint64_t bytes,
                            Urgency urgency);
  Result<size_t> fetch_some(objects::Reader& reader, std::span<char> rest, Urgency urgency);
  void put_in_cache(const cache::BlockId& id, const std::string& content);
  Result<void> authorize(const MountedObject& object);
  template <class T>
  Result<T> retry(const MountedObject& object, const std::function<Result<T>()>& attempt,
                  Urgency urgency);
  void keep(const Key& key, Block block) REQUIRES(mutex_);
  void work_ahead();
  bool stopped();
  bool stopped_after(Duration pause);
  void wait_for_reads();

  objects::Objects& objects_;
  cache::BlockCache* const cache_;
  Clock& clock_;
  const SourceSettings settings_;
  const Say say_;

  std::atomic<uint64_t> fetched_bytes_ = 0, cached_bytes_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  bool cache_failed_ GUARDED_BY(mutex_) = false;
  size_t fetching_reads_ GUARDED_BY(mutex_) = 0;
  std::map<Key, Entry> blocks_ GUARDED_BY(mutex_);
  std::list<Key> by_use_ GUARDED_BY(mutex_);  // the most recently used first
  std::set<const MountedObject*> authorized_ GUARDED_BY(mutex_);
  std::deque<Key> ahead_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::mount
