// Names are the names in one directory of the key tree, sorted like keys. NamesCache caches those
// of large directories.
//
// A page of a listing needs the names after some key. A directory cannot be read in order, so all
// of it is read and sorted. That takes about 100 ms for a hundred thousand names, and would be
// repeated for each page. Large directories are therefore cached until they change or until others
// need the memory.
//
// Threads: Names is immutable; NamesCache is callable from anywhere.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::objects {

class Names {
 public:
  explicit Names(const std::vector<std::string>& key_bytes);
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t at) const;
  // Returns the index of the first name at or below which there may be a key that is not less than
  // `bound` (key_path.hpp).
  size_t position(std::string_view bound) const;
  size_t memory_bytes() const { return bytes_.capacity() + ends_.capacity() * sizeof(uint32_t); }

 private:
  std::string bytes_;  // concatenated: separate strings would use three times the memory
  std::vector<uint32_t> ends_;
};

class NamesCache {
 public:
  // one page of a listing; smaller directories are read in a millisecond
  static constexpr size_t kNamesWorthCachingMin = 1'000;
  // about 200,000 names; limits the memory of an idle server
  static constexpr size_t kMemoryBytesMax = 8 << 20;

  // Returns the names in the directory; none if it does not exist.
  Result<std::shared_ptr<const Names>> read(const std::string& path);
  // Must be called after each change of the directory's names.
  void changed(const std::string& path);

 private:
  struct Reading {
    const std::string* path;
    bool changed = false;
  };
  Mutex mutex_;
  // Shared with the walks that read from them; the last one frees the names.
  std::map<std::string, std::shared_ptr<const Names>> cache_ GUARDED_BY(mutex_);
  size_t cached_bytes_ GUARDED_BY(mutex_) = 0;
  std::list<Reading> readings_ GUARDED_BY(mutex_);
};

// Returns true if there is an object below the directory.
Result<bool> holds_object(const std::string& path);

}  // namespace trainyard::objects
