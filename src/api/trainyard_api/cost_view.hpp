// Converts amounts of money to members of responses.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "domain/price.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api::trainyard_api {

// Formats "0.001250": always six decimals, so that the value is exact.
std::string decimal(int64_t millionths);

shapes::trainyard::Cost cost_view(const domain::Cost& cost, const std::string& currency);

}  // namespace trainyard::api::trainyard_api
