// MachineClock and MachineRandom read the clocks and the random source of the machine. main passes
// them to all constructors that take a Clock or a Random.
//
// Threads: callable from anywhere. Errors: none.
#pragma once

#include "base/random.hpp"
#include "base/time.hpp"

namespace trainyard::os {

class MachineClock final : public Clock {
 public:
  Instant now() override;
  std::chrono::nanoseconds monotonic() override;
};

// Reads random bytes from the kernel (getrandom).
class MachineRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override;
};

}  // namespace trainyard::os
