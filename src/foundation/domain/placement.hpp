// A Placement is the machine on which one host of a gang is placed, and the share of the machine
// that the host gets.
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
