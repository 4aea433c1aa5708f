// Formats the machine's cache of objects' blocks as the page of `trainyard cache ls`.
//
// Threads: plain values, pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// CachedEntryView is a bucket, a directory of keys ("in/") or an object.
struct CachedEntryView {
  std::string name;
  uint64_t objects = 0, blocks = 0;
  uint64_t bytes = 0, pinned_bytes = 0;
  Instant used;  // the last time
};

struct PinView {
  std::string name;      // "job x, channel train", "s3://bucket/prefix"
  bool running = false;  // the pin of a running job, which ends with the job
  uint64_t bytes = 0;
};

struct CacheView {
  uint64_t bytes = 0, bytes_max = 0;
  uint64_t pinned_bytes = 0, pinned_bytes_max = 0;
  std::vector<CachedEntryView> entries;
  std::vector<PinView> pins;
};

// CachedBlockView is a block of an object in the cache.
struct CachedBlockView {
  std::string bucket, key, etag;
  uint64_t bytes = 0;
  bool pinned = false;
  Instant used;
};

// CachedEntries sums blocks by bucket, or by the directories and objects directly below a prefix,
// as `aws s3 ls` lists them.
class CachedEntries {
 public:
  // `bucket` "" = all buckets.
  CachedEntries(std::string bucket, std::string prefix)
      : bucket_(std::move(bucket)), prefix_(std::move(prefix)) {}
  bool has(const std::string& bucket, const std::string& key) const {
    return bucket_.empty() || (bucket == bucket_ && key.starts_with(prefix_));
  }
  // Ignores blocks that are not below the prefix.
  void add(const CachedBlockView& block);
  std::vector<CachedEntryView> all() const;  // ordered by name

 private:
  struct Entry {
    CachedEntryView view;
    std::set<std::pair<std::string, std::string>> versions;  // keys and ETags
  };
  const std::string bucket_, prefix_;
  std::map<std::string, Entry> entries_;
};

std::string cache_page(const OutputStyle& style, const CacheView& cache, Instant now);
Json to_json(const CacheView& cache);

}  // namespace trainyard::cli
