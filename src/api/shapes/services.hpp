// Lists the services with generated shapes.
//
// Threads: pure function.
#pragma once

#include <span>

#include "shapes/shape.hpp"

namespace trainyard::api {

// Returns the services in the order in which a request's operation is searched. S3 is last, since
// its requests have no distinctive mark.
std::span<const shapes::Service* const> all_services();

}  // namespace trainyard::api
