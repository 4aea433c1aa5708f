// Placement names the machine of one host of a gang, and the share of the machine that the host
// gets.
//
// Threads: plain values.
#pragma once

#include <string>

#include "domain/job.hpp"

namespace trainyard::domain {

struct Placement {
  std::string machine;
  Share share;
};

}  // namespace trainyard::domain
