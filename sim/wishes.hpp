// What users of a simulation ask for.
#pragma once

#include <vector>

#include "control/control.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {

// Arrays of Batch, none or a few, in the order of their submission: each may await those before it. They are in queue "q".
std::vector<control::NewJob> some_arrays(World& world);

}  // namespace trainyard::sim
