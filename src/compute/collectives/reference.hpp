// Computes reductions in the slow and obvious way, over the inputs of all ranks at once. Every plan must equal it.
//
// Numbers are kept as double (floats) or int64 (integers) and rounded by the plainest code, one at a time.
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

// Reduces each element as its expression says: the result of each part is rounded to the type (narrower types are kept as
// float32 within a part), and an average is divided by the number of ranks.
// Requires: inputs of equal sizes.
Bytes reduced(Type type, Reduction reduction, const std::vector<Bytes>& inputs,
              const std::function<plan::Expression(size_t element)>& expression);

// Concatenates the parts.
Bytes joined(const std::vector<Bytes>& parts);

}  // namespace trainyard::collectives::reference
