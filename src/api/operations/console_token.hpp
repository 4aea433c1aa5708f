// A ConsoleToken opens one session of the console, once.
//
// Threads: a plain value.
#pragma once

#include <string>

#include "base/time.hpp"

namespace trainyard::api {

struct ConsoleToken {
  std::string secret;
  Instant expires;
};

}  // namespace trainyard::api
