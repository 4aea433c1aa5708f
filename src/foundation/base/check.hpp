// CHECK(condition, "why it must hold") is an assertion that stays on in every build. It is for bugs
// only, never for data from outside. A failed check prints the source location and the reason, then
// aborts.
#pragma once

namespace trainyard {
[[noreturn]] void check_failed(const char* condition, const char* why, const char* file, int line);
}

#define CHECK(condition, why) \
  ((condition) ? void(0) : ::trainyard::check_failed(#condition, why, __FILE__, __LINE__))
