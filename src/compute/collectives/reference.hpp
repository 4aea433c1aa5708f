// Computes reductions in the slow and obvious way, over the inputs of all ranks at once. Every plan
// must give the same bits.
//
// Numbers are kept as double (floats) or int64 (integers), and rounded by plain scalar code.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "collectives/plan/plan.hpp"
#include "collectives/types.hpp"

namespace trainyard::collectives::reference {

using Bytes = std::vector<std::byte>;

// Reduces each element in the order of its expression. The result of each part is rounded to the
// type; within a part, types below 32 bits are kept as float32. An average is divided by the number
// of ranks.
// Requires: inputs of equal sizes.
Bytes reduced(Type type, Reduction reduction, const std::vector<Bytes>& inputs,
              const std::function<plan::Expression(size_t element)>& expression);

// Concatenates the parts.
Bytes joined(const std::vector<Bytes>& parts);

}  // namespace trainyard::collectives::reference
