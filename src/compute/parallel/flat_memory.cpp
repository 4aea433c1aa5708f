#include "parallel/flat_memory.hpp"

namespace trainyard::parallel {

FlatMemory::FlatMemory(collectives::Group& group, size_t bytes) : group_(group) {
  const auto elements = int64_t(bytes / sizeof(float));
  if (bytes > 0)
    if (auto memory = group_.allocate(bytes)) shared_ = *memory;
  if (!shared_.empty()) {
    values_ = at::from_blob(shared_.data(), {elements}, at::kFloat);
    values_.zero_();
  } else {
    values_ = at::zeros({elements}, at::kFloat);
  }
}

FlatMemory::~FlatMemory() {
  values_ = at::Tensor();
  if (!shared_.empty()) group_.free(shared_);
}

FlatMemory* FlatPool::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<FlatMemory>(group_, bytes_));
    free_.push_back(all_.back().get());
  }
  FlatMemory* const memory = free_.back();
  free_.pop_back();
  return memory;
}

collectives::BufferView buffer_of(const at::Tensor& values) {
  CHECK(values.scalar_type() == at::kFloat && values.is_contiguous(),
        "an operation needs contiguous values of f32");
  return {values.data_ptr(), size_t(values.numel()), collectives::Type::f32};
}

at::Tensor view_in(const at::Tensor& flat, size_t begin_bytes, const at::Tensor& shape) {
  return flat.narrow(0, int64_t(begin_bytes / sizeof(float)), shape.numel()).view(shape.sizes());
}

}  // namespace trainyard::parallel
