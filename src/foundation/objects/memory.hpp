// Stores objects in memory, for tests and the simulator. Behaves like the directory, but has no
// disk errors.
#pragma once

#include <memory>

#include "base/random.hpp"
#include "base/time.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

std::unique_ptr<Objects> make_memory(Clock& clock, Random& random);

}  // namespace trainyard::objects
