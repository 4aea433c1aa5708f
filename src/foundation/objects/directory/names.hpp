// Sorts the names of one directory of the key tree like keys, and caches large directories.
//
// A page of a listing needs the names after some key. A directory cannot be read in order, so all
// of it is read and sorted: some 100 ms for a hundred thousand names, which a listing by pages
// would spend on each page. So large directories stay in this cache until they change or others
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
  // The index of the first name that may hold a key not less than `bound`; see key_path.hpp.
  size_t position(std::string_view bound) const;
  size_t memory_bytes() const { return bytes_.capacity() + ends_.capacity() * sizeof(uint32_t); }

 private:
  std::string bytes_;  // concatenated: separate strings would use three times the memory
  std::vector<uint32_t> ends_;
};

class NamesCache {
 public:
  // one page; smaller ones are read in a millisecond
  static constexpr size_t kNamesWorthCachingMin = 1'000;
  // some 200,000 names; the idle server stays small
  static constexpr size_t kMemoryBytesMax = 8 << 20;

  // Returns the names in the directory; none when it does not, or no longer, exist.
  Result<std::shared_ptr<const Names>> read(const std::string& path);
  // Must be called after each change of the directory's names.
  void changed(const std::string& path);

 private:
  struct Reading {
    const std::string* path;
    bool changed = false;
  };
  Mutex mu_;
  // Shared with the walks that read from them; the last one frees the names.
  std::map<std::string, std::shared_ptr<const Names>> kept_ GUARDED_BY(mu_);
  size_t kept_bytes_ GUARDED_BY(mu_) = 0;
  std::list<Reading> readings_ GUARDED_BY(mu_);
};

// True if any object lies below the directory.
Result<bool> holds_object(const std::string& path);

}  // namespace trainyard::objects
