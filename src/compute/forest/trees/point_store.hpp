// A PointStore stores each point of a forest once, for all trees that have it.
//
// Threads: confined to one, except that at() may be called from any thread while nothing is added
// or released. Errors: none; the caller limits the number of points. Lifetime: a point lives until
// its last reference is released; its slot is then used again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.hpp"

namespace trainyard::forest {

class PointStore {
 public:
  explicit PointStore(size_t dimensions) : dimensions_(dimensions) {}

  // Returns the slot of a copy of `point`, with one reference.
  uint32_t add(std::span<const float> point) {
    CHECK(point.size() == dimensions_, "a point has the dimensions of its store");
    if (!free_.empty()) {
      const uint32_t slot = free_.back();
      free_.pop_back();
      std::copy(point.begin(), point.end(), values_.begin() + ptrdiff_t(slot * dimensions_));
      references_[slot] = 1;
      return slot;
    }
    values_.insert(values_.end(), point.begin(), point.end());
    references_.push_back(1);
    return uint32_t(references_.size() - 1);
  }
  void keep(uint32_t slot) { ++references_[slot]; }
  // Releases a reference. Returns true if it was the last one.
  bool release(uint32_t slot) {
    CHECK(references_[slot] > 0, "a reference is released once");
    if (--references_[slot] > 0) return false;
    free_.push_back(slot);
    return true;
  }
  const float* at(uint32_t slot) const { return values_.data() + size_t(slot) * dimensions_; }
  std::span<const float> point(uint32_t slot) const { return {at(slot), dimensions_}; }
  size_t dimensions() const { return dimensions_; }
  // Returns the number of slots, in use or free.
  size_t slots() const { return references_.size(); }
  size_t size() const { return references_.size() - free_.size(); }
  bool is_used(uint32_t slot) const { return references_[slot] > 0; }

 private:
  size_t dimensions_;
  std::vector<float> values_;  // (slots, dimensions)
  std::vector<uint32_t> references_;
  std::vector<uint32_t> free_;
};

}  // namespace trainyard::forest
