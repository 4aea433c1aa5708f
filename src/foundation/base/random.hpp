// Where unpredictable bytes come from. host gives the machine's; the simulator and tests give a seeded one.
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
  // `bytes` random bytes, as twice as many lower-case hex digits.
  std::string hex(size_t bytes);
};

// xoshiro256** from one seed: equal seeds give equal bytes in every release. Not for secrets.
// Confined to one thread at a time.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed);
  void fill(std::span<std::byte> bytes) override;
  uint64_t next();
  // Uniform in [0, limit). Requires: limit > 0.
  uint64_t below(uint64_t limit) { return next() % limit; }
  // True once in `one_in` times on average.
  bool chance(uint64_t one_in) { return below(one_in) == 0; }

 private:
  uint64_t state_[4];
};

}  // namespace trainyard
