// Provides the machine's own clock and randomness, which main passes to every user of a Clock or a
// Random.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"

namespace trainyard::os {

class MachineClock final : public Clock {
 public:
  Instant now() override;
  std::chrono::nanoseconds monotonic() override;
};

// The kernel's getrandom.
class MachineRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override;
};

}  // namespace trainyard::os
