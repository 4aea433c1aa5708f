// Objects in memory, for tests and the simulator. Same behaviour as the directory, but for what a disk can do
// wrong.
#pragma once

#include <memory>

#include "base/random.hpp"
#include "base/time.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

std::unique_ptr<Objects> make_memory(Clock& clock, Random& random);

}  // namespace trainyard::objects
