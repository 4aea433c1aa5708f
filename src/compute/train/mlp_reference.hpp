// The perceptron of mlp.hpp, slow and obvious, in double precision: what the fast one must equal up to
// rounding.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "train/mlp.hpp"

namespace trainyard::train::reference {

// The loss of one row.
double loss(const Shape& shape, const std::vector<double>& parameters, const std::vector<double>& input,
            int32_t label);

// Its slope by every parameter.
std::vector<double> gradient(const Shape& shape, const std::vector<double>& parameters,
                             const std::vector<double>& input, int32_t label);

}  // namespace trainyard::train::reference
