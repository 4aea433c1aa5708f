#include "parallel/stored_tensors.hpp"

#include <cstring>

#include "base/json.hpp"

namespace trainyard::parallel {
namespace {

std::vector<uint64_t> shape_of(const at::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

std::string to_text(const std::vector<uint64_t>& shape) { return dump(Json(shape)); }

}  // namespace

void add_tensors(const std::vector<NamedTensor>& tensors, checkpoint::Contents& contents) {
  for (const auto& [name, tensor] : tensors) {
    CHECK(tensor.scalar_type() == at::kFloat && tensor.is_contiguous(),
          "a stored tensor is contiguous and f32");
    contents.tensors[name] = {checkpoint::Type::f32,
                              shape_of(tensor),
                              {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()}};
  }
}

Result<void> assign_tensors(const checkpoint::Contents& contents,
                            const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const auto found = contents.tensors.find(name);
    if (found == contents.tensors.end())
      return corrupt("tensor " + name + " not found: the checkpoint belongs to another model");
    const checkpoint::TensorView& stored = found->second;
    if (stored.type != checkpoint::Type::f32 || stored.shape != shape_of(tensor))
      return corrupt("tensor " + name + " is " + std::string(to_string(stored.type)) +
                     " of shape " + to_text(stored.shape) + ", but the model needs F32 of shape " +
                     to_text(shape_of(tensor)));
  }
  for (const auto& [name, tensor] : tensors) {
    const std::string_view bytes = contents.tensors.at(name).bytes;
    std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  }
  return ok();
}

}  // namespace trainyard::parallel
