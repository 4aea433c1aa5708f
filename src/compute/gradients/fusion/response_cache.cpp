#include "gradients/fusion/response_cache.hpp"

#include <algorithm>

namespace trainyard::gradients {

std::optional<size_t> ResponseCache::position_of(const std::string& key) const {
  const auto found = positions_.find(key);
  if (found == positions_.end()) return {};
  return found->second;
}

const ResponseCache::Entry* ResponseCache::find(const std::string& key) const {
  const auto position = position_of(key);
  return position ? at(*position) : nullptr;
}

std::string ResponseCache::put(Agreement agreement, std::optional<Signature> own) {
  std::string gone;
  // A group that does not fit as a whole would be added and evicted in every cycle.
  if (entries_max_ == 0 || agreement.signature.group_members > entries_max_) return gone;
  const std::string key = key_of(agreement.signature);
  auto found = positions_.find(key);
  if (found == positions_.end()) {
    if (positions_.size() == entries_max_) {
      const auto oldest = std::min_element(
          positions_.begin(), positions_.end(),
          [&](auto& a, auto& b) { return entries_[a.second]->used < entries_[b.second]->used; });
      gone = oldest->first;
      forget(gone);
    }
    const auto empty = std::find(entries_.begin(), entries_.end(), std::nullopt);
    const auto position = size_t(empty - entries_.begin());
    if (empty == entries_.end()) entries_.emplace_back();
    found = positions_.emplace(key, position).first;
  }
  entries_[found->second] = Entry{std::move(agreement), std::move(own), ++uses_};
  return gone;
}

void ResponseCache::forget(const std::string& key) {
  const auto found = positions_.find(key);
  if (found == positions_.end()) return;
  entries_[found->second].reset();
  positions_.erase(found);
}

}  // namespace trainyard::gradients
