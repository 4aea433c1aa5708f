// CHECK(condition, "why it must hold"): an assertion that stays on in every build. For our own faults only, never for
// data from outside. A failed one prints the place and the reason, and aborts.
#pragma once

namespace trainyard {
[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);
}

#define CHECK(condition, why) \
  ((condition) ? void(0) : ::trainyard::check_failed(#condition, why, __FILE__, __LINE__))
