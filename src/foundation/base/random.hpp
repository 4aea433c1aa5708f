// Random is a source of random bytes. Programs use os::MachineRandom; the simulator and tests use a
// SeededRandom.
//
// Threads: callable from anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace trainyard {

class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::byte> bytes) = 0;

  uint64_t number() {
    uint64_t value;
    fill(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // Returns `bytes` random bytes as lower-case hex, two digits per byte.
  std::string hex(size_t bytes);
  // Returns 16 random bytes in the form of a UUID: 8, 4, 4, 4 and 12 hex digits.
  std::string uuid();
};

// Generates bytes by xoshiro256** from one seed: equal seeds give equal bytes in every release.
// Must not be used for secrets. Confined to one thread at a time.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed);
  void fill(std::span<std::byte> bytes) override;
  uint64_t next();
  // Returns a uniform number in [0, limit). Requires: limit > 0.
  uint64_t below(uint64_t limit) { return next() % limit; }
  // Returns true with a probability of 1 / one_in.
  bool chance(uint64_t one_in) { return below(one_in) == 0; }

 private:
  uint64_t state_[4];
};

}  // namespace trainyard
