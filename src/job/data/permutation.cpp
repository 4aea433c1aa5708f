#include "data/permutation.hpp"

#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace trainyard::data {
namespace {

// SplitMix64: small, and unlike the standard's distributions the same on every platform.
class SeededRandom {
 public:
  SeededRandom(uint64_t seed, uint64_t epoch) : state_(seed) {
    state_ = next() + epoch * 0x9e3779b97f4a7c15;  // neighbouring epochs are independent
  }
  // Returns 0 .. bound - 1, uniformly: draws again for values beyond the last multiple of `bound`.
  uint32_t below(uint32_t bound) {
    const uint64_t rest = (UINT64_MAX % bound + 1) % bound;
    for (;;) {
      const uint64_t value = next();
      if (value <= UINT64_MAX - rest) return static_cast<uint32_t>(value % bound);
    }
  }

 private:
  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }
  uint64_t state_;
};

}  // namespace

std::vector<uint32_t> permutation_of(uint32_t items, std::optional<int64_t> seed, uint64_t epoch) {
  std::vector<uint32_t> order(items);
  std::iota(order.begin(), order.end(), 0u);
  if (!seed) return order;
  SeededRandom random(static_cast<uint64_t>(*seed), epoch);
  for (uint32_t left = items; left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

std::vector<uint32_t> share_of(const std::vector<uint32_t>& order, uint32_t host, uint32_t hosts) {
  CHECK(host < hosts, "a host of the channel");
  std::vector<uint32_t> share;
  share.reserve(order.size() / hosts + 1);
  for (size_t i = host; i < order.size(); i += hosts) share.push_back(order[i]);
  return share;
}

}  // namespace trainyard::data
