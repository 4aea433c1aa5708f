// A clock that stands still, for tests.
#pragma once

#include "base/time.hpp"

namespace trainyard::campaign::test {

class SetClock final : public Clock {
 public:
  Instant at = from_milliseconds(1'000'000);
  Instant now() override { return at; }
  std::chrono::nanoseconds monotonic() override { return at.time_since_epoch(); }
};

}  // namespace trainyard::campaign::test
