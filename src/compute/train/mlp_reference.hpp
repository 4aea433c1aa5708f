// Computes the perceptron of mlp.hpp in double precision, in the slow and obvious way. The fast
// version must equal it up to rounding.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "train/mlp.hpp"

namespace trainyard::train::reference {

// Returns the loss of one row.
double loss(const Shape& shape, const std::vector<double>& parameters,
            const std::vector<double>& input, int32_t label);

// Returns the gradient of the loss with respect to every parameter.
std::vector<double> gradient(const Shape& shape, const std::vector<double>& parameters,
                             const std::vector<double>& input, int32_t label);

}  // namespace trainyard::train::reference
