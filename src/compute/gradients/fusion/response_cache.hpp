// A ResponseCache stores earlier agreements of the ranks. Each tensor has a fixed position, so one
// bit represents it.
//
// Every rank has the same entries at the same positions, since only messages that all ranks receive
// change them. A full cache evicts the least recently used entry, by the order in which tensors
// were reduced.
//
// Threads: confined to one at a time. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradients/fusion/request.hpp"

namespace trainyard::gradients {

class ResponseCache {
 public:
  struct Entry {
    Agreement agreement;
    // this rank's request; none if the rank is not a member of the set
    std::optional<Signature> own;
    uint64_t used = 0;
  };

  explicit ResponseCache(size_t entries_max) : entries_max_(entries_max) {}

  // Returns the number of positions, some of which may be empty.
  size_t positions() const { return entries_.size(); }
  const Entry* at(size_t position) const {
    return entries_[position] ? &*entries_[position] : nullptr;
  }
  std::optional<size_t> position_of(const std::string& key) const;
  const Entry* find(const std::string& key) const;
  void touch(size_t position) { entries_[position]->used = ++uses_; }
  // Adds or replaces an entry. Returns the key that was evicted for it; empty for none.
  std::string put(Agreement agreement, std::optional<Signature> own);
  void forget(const std::string& key);

 private:
  const size_t entries_max_;
  uint64_t uses_ = 0;
  std::vector<std::optional<Entry>> entries_;  // by position
  std::map<std::string, size_t, std::less<>> positions_;
};

}  // namespace trainyard::gradients
