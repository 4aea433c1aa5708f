#include "data/order.hpp"

#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace trainyard::data {
namespace {

// SplitMix64: small, and the same on every platform, which the standard's distributions are not.
class Dice {
 public:
  Dice(uint64_t seed, uint64_t epoch) : state_(seed) {
    state_ = next() + epoch * 0x9e3779b97f4a7c15;  // neighbouring epochs are independent
  }
  // Returns 0 .. sides - 1, uniformly: a value beyond the last multiple of `sides` is drawn again.
  uint32_t roll(uint32_t sides) {
    const uint64_t rest = (UINT64_MAX % sides + 1) % sides;
    for (;;) {
      const uint64_t value = next();
      if (value <= UINT64_MAX - rest) return static_cast<uint32_t>(value % sides);
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

std::vector<uint32_t> order_of(uint32_t items, std::optional<int64_t> seed, uint64_t epoch) {
  std::vector<uint32_t> order(items);
  std::iota(order.begin(), order.end(), 0u);
  if (!seed) return order;
  Dice dice(static_cast<uint64_t>(*seed), epoch);
  for (uint32_t left = items; left > 1; --left) std::swap(order[left - 1], order[dice.roll(left)]);
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
