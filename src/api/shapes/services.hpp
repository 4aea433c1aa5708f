// Lists the services whose shapes are generated.
//
// Threads: pure function.
#pragma once

#include <span>

#include "shapes/shape.hpp"

namespace trainyard::api {

// In the order in which a request's operation is looked up: S3, which has no marks of its own, is last.
std::span<const shapes::Service* const> all_services();

}  // namespace trainyard::api
