// Lists the services whose shapes are generated.
//
// Threads: pure function.
#pragma once

#include <span>

#include "shapes/shape.hpp"

namespace trainyard::api {

// The order is that in which a request's operation is looked up. S3, whose requests have no
// distinctive mark, is last.
std::span<const shapes::Service* const> all_services();

}  // namespace trainyard::api
