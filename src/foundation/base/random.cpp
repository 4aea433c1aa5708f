#include "base/random.hpp"

#include <bit>
#include <cstring>

#include "base/text.hpp"

namespace trainyard {

std::string Random::hex(size_t bytes) {
  std::string raw(bytes, '\0');
  fill(std::as_writable_bytes(std::span(raw)));
  return to_hex(raw);
}

std::string Random::uuid() {
  const std::string digits = hex(16);
  return digits.substr(0, 8) + "-" + digits.substr(8, 4) + "-" + digits.substr(12, 4) + "-" +
         digits.substr(16, 4) + "-" + digits.substr(20);
}

SeededRandom::SeededRandom(uint64_t seed) {
  // SplitMix64 expands the seed to the state, as the authors of xoshiro recommend.
  for (auto& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    word = z ^ (z >> 31);
  }
}

uint64_t SeededRandom::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

void SeededRandom::fill(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const uint64_t word = next();
    const size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(bytes.data(), &word, size);
    bytes = bytes.subspan(size);
  }
}

}  // namespace trainyard
