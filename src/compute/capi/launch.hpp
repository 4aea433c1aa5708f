// Reads how this process was launched, from the environment and SageMaker's file, or from the texts
// that the caller of the C interface passes instead.
//
// Threads: plain function. Errors: invalid, naming the variable.
#pragma once

#include "base/result.hpp"
#include "capi/trainyard_launch.h"
#include "collectives/launch.hpp"

namespace trainyard::capi {

Result<collectives::Launch> read_launch(const trainyard_launch_source& source);
// Returns where this process counts its collectives.
collectives::ActivityFile activity_of_process();

}  // namespace trainyard::capi
