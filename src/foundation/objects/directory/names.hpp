// The names in one directory of the key tree, ordered as keys, and a small cache of the large ones.
//
// A page of a listing needs the names after some key. A directory cannot be read in order, so all of it is
// read and sorted: for a hundred thousand names some 100 ms, which a listing by pages would pay for each
// page. So large directories that were read stay here until something in them changes or others need the
// room.
//
// Threads: Names is immutable; NamesCache is guarded by its mutex.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::objects {

class Names {
 public:
  explicit Names(const std::vector<std::string>& key_bytes);
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t at) const;
  // The first name that may hold a key not less than `bound`: see key_path.hpp for what names stand for.
  size_t position(std::string_view bound) const;
  size_t memory_bytes() const { return bytes_.capacity() + ends_.capacity() * sizeof(uint32_t); }

 private:
  std::string bytes_;  // one behind the other: a hundred thousand strings would cost three times the memory
  std::vector<uint32_t> ends_;
};

class NamesCache {
 public:
  static constexpr size_t kNamesWorthCachingMin = 1'000;  // one page; smaller ones are read in a millisecond
  static constexpr size_t kMemoryBytesMax = 8 << 20;      // some 200,000 names; the idle server stays small

  // The names in the directory; none when it is not there (any more).
  Result<std::shared_ptr<const Names>> read(const std::string& path);
  // Must be called after each change of the directory's names.
  void changed(const std::string& path);

 private:
  struct Reading {
    const std::string* path;
    bool changed = false;
  };
  std::mutex mu_;
  // Shared with the walks that read from them; whoever is last frees the names.
  std::map<std::string, std::shared_ptr<const Names>> kept_;  // guarded by mu_
  size_t kept_bytes_ = 0;                                     // guarded by mu_
  std::list<Reading> readings_;                               // guarded by mu_
};

// Whether any object lies below the directory.
Result<bool> holds_object(const std::string& path);

}  // namespace trainyard::objects
