// What every plan must equal: the slow and obvious way, over all ranks' inputs at once.
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

// Each element is combined as its expression says; a fold's result is rounded to the type (a float32 kept wide
// for narrower types) and the whole is divided by the number of ranks where an average is asked for.
// Requires: inputs are equally long.
Bytes reduced(Type type, Reduction reduction, const std::vector<Bytes>& inputs,
              const std::function<plan::Expression(size_t element)>& expression);

// The parts, one after the other.
Bytes joined(const std::vector<Bytes>& parts);

}  // namespace trainyard::collectives::reference
