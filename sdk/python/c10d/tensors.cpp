#include "sdk/python/c10d/tensors.hpp"

#include <torch/extension.h>

#include <cstdlib>
#include <sstream>

namespace trainyard::sdk {

using at::Tensor;
using c10d::ReduceOp;
using collectives::BufferView;
using collectives::Group;
using collectives::ReduceOptions;
using collectives::Reduction;
using collectives::Type;
namespace calls = collectives::calls;

namespace {

void expect_one_list(const Tensor& first, const Tensor& tensor) {
  TORCH_CHECK(tensor.scalar_type() == first.scalar_type(),
              "trainyard: all tensors of a list must have one type");
}

c10::optional<Type> type_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
    case at::kComplexDouble:
      return Type::f64;
    case at::kFloat:
    case at::kComplexFloat:
      return Type::f32;
    case at::kHalf:
      return Type::f16;
    case at::kBFloat16:
      return Type::bf16;
    case at::kLong:
      return Type::i64;
    case at::kInt:
      return Type::i32;
    case at::kShort:
      return Type::i16;
    case at::kChar:
      return Type::i8;
    case at::kByte:
      return Type::u8;
    case at::kBool:
      return Type::boolean;
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
    case at::kFloat8_e4m3fn:
      return Type::f8e4m3;
    case at::kFloat8_e5m2:
      return Type::f8e5m2;
#endif
    default:
      return c10::nullopt;
  }
}

ReduceOptions reducing_of(const ReduceOp& op, const Tensor& tensor) {
  ReduceOptions reducing;
  switch (op.op_) {
    case ReduceOp::SUM:
      break;
    case ReduceOp::AVG:
      reducing.reduction = Reduction::average;
      break;
    case ReduceOp::PRODUCT:
      reducing.reduction = Reduction::product;
      break;
    case ReduceOp::MIN:
      reducing.reduction = Reduction::minimum;
      break;
    case ReduceOp::MAX:
      reducing.reduction = Reduction::maximum;
      break;
    case ReduceOp::PREMUL_SUM: {
      const auto* factor = static_cast<c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
      TORCH_CHECK(factor && factor->double_factor != 0.0,
                  "trainyard: PREMUL_SUM takes a number, not a tensor");
      reducing.prescale = factor->double_factor;
      break;
    }
    default:
      TORCH_CHECK(false, "trainyard: unsupported reduction");
  }
  const bool additive =
      reducing.reduction == Reduction::sum || reducing.reduction == Reduction::average;
  TORCH_CHECK(additive || !at::isComplexType(tensor.scalar_type()),
              "trainyard: complex numbers can be summed and averaged only");
  TORCH_CHECK(reducing.reduction != Reduction::average || tensor.scalar_type() != at::kBool,
              "trainyard: unsupported reduction: average of booleans");
  (void)buffer_view(tensor);  // throws here for an unsupported type
  return reducing;
}

}  // namespace

std::string kind_of(const Tensor& tensor) { return c10::toString(tensor.scalar_type()); }

std::string kind_of(const Tensors& tensors) {
  if (tensors.empty()) return "";
  return (tensors.size() == 1 ? "" : std::to_string(tensors.size()) + " ") + kind_of(tensors[0]) +
         "[" + std::to_string(tensors[0].numel()) + "], ";
}

BufferView buffer_view(const Tensor& tensor) {
  const auto type = type_of(tensor.scalar_type());
  TORCH_CHECK(type, "trainyard: cannot combine tensors of ", kind_of(tensor));
  const auto parts = at::isComplexType(tensor.scalar_type()) ? size_t{2} : size_t{1};
  return {tensor.data_ptr(), size_t(tensor.numel()) * parts, *type};
}

BufferView bytes(const Tensor& tensor) {
  return {tensor.data_ptr(), size_t(tensor.numel()) * tensor.element_size(), Type::u8};
}

size_t bytes_of(const Tensor& tensor) { return size_t(tensor.numel()) * tensor.element_size(); }

std::vector<size_t> bytes_of(const Tensors& tensors) {
  std::vector<size_t> counts;
  for (const Tensor& tensor : tensors) counts.push_back(bytes_of(tensor));
  return counts;
}

void expect_ours(const Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == at::kStrided,
              "trainyard: this backend takes dense tensors in CPU memory; this one is ",
              tensor.layout(), " on ", tensor.device());
}

void expect_one_type(const Tensor& input, const Tensor& output) {
  TORCH_CHECK(input.scalar_type() == output.scalar_type(),
              "trainyard: input and output have different types: ", kind_of(input), " and ",
              kind_of(output));
}

Tensor& only(Tensors& tensors) {
  TORCH_CHECK(tensors.size() == 1, "trainyard: pass one tensor per rank, not ", tensors.size());
  expect_ours(tensors[0]);
  return tensors[0];
}

Tensor joined(const Tensors& tensors) {
  Tensors flat;
  for (const Tensor& tensor : tensors) {
    expect_ours(tensor);
    expect_one_list(tensors[0], tensor);
    flat.push_back(tensor.contiguous().view({-1}));
  }
  return at::cat(flat);
}

Tensor flat_buffer_for(const Tensors& tensors) {
  int64_t elements = 0;
  for (const Tensor& tensor : tensors) {
    expect_ours(tensor);
    expect_one_list(tensors[0], tensor);
    elements += tensor.numel();
  }
  return at::empty({elements}, tensors.at(0).options());
}

void part(const Tensor& flat, const Tensors& tensors) {
  int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    tensor.copy_(flat.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

bool is_bitwise(const ReduceOp& op) {
  return op.op_ == ReduceOp::BAND || op.op_ == ReduceOp::BOR || op.op_ == ReduceOp::BXOR;
}

Result<void> combine_bits(const Named& named, const Tensor& tensor, ReduceOp::RedOpType op) {
  Tensor all = at::empty({named.group.size(), tensor.numel()}, tensor.options());
  TRY(named.run(calls::all_gather(bytes(tensor), bytes(all))));
  Tensor out = tensor.view({-1});
  out.copy_(all[0]);
  for (int rank = 1; rank < named.group.size(); ++rank) {
    if (op == ReduceOp::BAND) out.bitwise_and_(all[rank]);
    if (op == ReduceOp::BOR) out.bitwise_or_(all[rank]);
    if (op == ReduceOp::BXOR) out.bitwise_xor_(all[rank]);
  }
  return ok();
}

Result<void> sum_sparse(const Named& named, Tensor tensor) {
  const Tensor mine = tensor.coalesce();
  // Indices are rows, so that all_gather concatenates the indices of all ranks.
  const Tensor indices = mine.indices().t().contiguous(), values = mine.values().contiguous();
  std::ostringstream kind;
  kind << "a sparse " << kind_of(tensor) << tensor.sizes() << " by " << tensor.sparse_dim()
       << ", rows: ";
  const auto descriptions = TRY(named.group.all_gather(kind.str() + std::to_string(indices.size(0)))
                                    .in("sparse allreduce of " + named.name));
  int64_t rows = 0;
  std::vector<size_t> indices_bytes, values_bytes;
  std::vector<int64_t> values_shape = values.sizes().vec();
  values_shape[0] = 1;
  const size_t index_bytes = size_t(indices.size(1)) * sizeof(int64_t);
  const size_t value_bytes = size_t(c10::multiply_integers(values_shape)) * values.element_size();
  for (size_t rank = 0; rank < descriptions.size(); ++rank) {
    if (descriptions[rank].rfind(kind.str(), 0) != 0)
      return conflict("rank " + std::to_string(rank) + " has " + descriptions[rank] +
                      "; this rank has " + descriptions[size_t(named.group.rank())]);
    const auto count = std::strtoll(descriptions[rank].c_str() + kind.str().size(), nullptr, 10);
    rows += count;
    indices_bytes.push_back(size_t(count) * index_bytes);
    values_bytes.push_back(size_t(count) * value_bytes);
  }
  values_shape[0] = rows;
  const Tensor all_indices = at::empty({rows, indices.size(1)}, indices.options());
  const Tensor all_values = at::empty(values_shape, values.options());
  TRY(named.run(calls::all_gather(bytes(indices), bytes(all_indices), indices_bytes)));
  TRY(named.run(calls::all_gather(bytes(values), bytes(all_values), values_bytes)));
  tensor.copy_(at::sparse_coo_tensor(all_indices.t(), all_values, tensor.sizes()).coalesce());
  return ok();
}

Result<void> allreduce_now(const Named& named, const Tensor& tensor, const ReduceOp& op,
                           const ReduceOptions& reducing) {
  if (is_bitwise(op)) return combine_bits(named, tensor, op.op_);
  return named.run(calls::allreduce(buffer_view(tensor), reducing));
}

ReduceOptions reducing_or_bits(const ReduceOp& op, const Tensor& tensor) {
  if (!is_bitwise(op)) return reducing_of(op, tensor);
  TORCH_CHECK(at::isIntegralType(tensor.scalar_type(), true), "trainyard: bits of ",
              kind_of(tensor), " cannot be combined");
  return {};
}

}  // namespace trainyard::sdk
