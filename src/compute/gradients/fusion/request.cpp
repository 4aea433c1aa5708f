#include "gradients/fusion/request.hpp"

#include "base/enum_table.hpp"

namespace trainyard::gradients {
namespace {

constexpr EnumTable<Operation> kOperations{"operation",
                                           {{Operation::allreduce, "allreduce"},
                                            {Operation::adasum, "adasum"},
                                            {Operation::all_gather, "all_gather"},
                                            {Operation::broadcast, "broadcast"},
                                            {Operation::reduce_scatter, "reduce_scatter"},
                                            {Operation::all_to_all, "all_to_all"},
                                            {Operation::barrier, "barrier"},
                                            {Operation::join, "join"},
                                            {Operation::add_set, "add_set"},
                                            {Operation::remove_set, "remove_set"}}};
static_assert(kEnumerators<Operation> == kOperationsCount);

}  // namespace

std::string_view to_string(Operation operation) { return kOperations.text(operation); }

uint64_t Signature::row_elements() const {
  uint64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i];
  return elements;
}

uint64_t Signature::elements() const { return rows() * row_elements(); }

std::string name_of(const Signature& signature) {
  return std::string(to_string(signature.operation)) + " of " + signature.name;
}

std::string key_of(int set, std::string_view name) {
  return std::to_string(set).append("/").append(name);
}

}  // namespace trainyard::gradients
