#include "gradients/fusion/request.hpp"

namespace trainyard::gradients {

std::string_view to_string(Operation operation) {
  constexpr std::string_view names[operations_count] = {
      "allreduce",  "adasum",  "all_gather", "broadcast", "reduce_scatter",
      "all_to_all", "barrier", "join",       "add_set",   "remove_set"};
  return names[size_t(operation)];
}

uint64_t Signature::row_elements() const {
  uint64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i];
  return elements;
}

uint64_t Signature::elements() const { return rows() * row_elements(); }

std::string name_of(const Signature& signature) {
  return std::string(to_string(signature.operation)) + " of " + signature.name;
}

std::string key_of(int set, std::string_view name) { return std::to_string(set).append("/").append(name); }

}  // namespace trainyard::gradients
