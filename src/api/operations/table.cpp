#include "operations/table.hpp"

#include "base/check.hpp"

namespace trainyard::api {

const Entry* OperationTable::find(const shapes::OperationShape& shape) const {
  const auto found = entries_.find(&shape);
  return found == entries_.end() ? nullptr : &found->second;
}

Entry& OperationTable::entry_of(const shapes::OperationShape& shape, Runs runs) {
  const auto [at, made] = entries_.try_emplace(&shape);
  CHECK(made, "an operation is added once");
  at->second.shape = &shape;
  at->second.runs = runs;
  return at->second;
}

}  // namespace trainyard::api
