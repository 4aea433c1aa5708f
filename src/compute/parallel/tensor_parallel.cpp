#include "parallel/tensor_parallel.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "parallel/flat_memory.hpp"

namespace trainyard::parallel {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kGroup = "group";
constexpr const char* kColumns = "columns";

void keep(AutogradContext* context, TensorGroup* group) {
  context->saved_data[kGroup] = int64_t(reinterpret_cast<intptr_t>(group));
}
TensorGroup& kept_group(AutogradContext* context) {
  return *reinterpret_cast<TensorGroup*>(intptr_t(context->saved_data[kGroup].toInt()));
}

at::Tensor columns_of(const at::Tensor& whole, const TensorGroup& group) {
  const TensorRange range = range_of(whole.size(-1), group.rank(), group.size());
  return whole.narrow(-1, range.begin, range.count);
}

// Forward: returns the input. Backward: sums the gradient over the ranks, each of which computes a
// part.
struct CopyToRanks : torch::autograd::Function<CopyToRanks> {
  static Variable forward(AutogradContext* context, const Variable& values, TensorGroup* group) {
    keep(context, group);
    return values.view_as(values);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {kept_group(context).sum(gradients[0]), Variable()};
  }
};

// Forward: sums over the ranks. Backward: returns the gradient unchanged, since each rank has the
// whole gradient.
struct SumOfRanks : torch::autograd::Function<SumOfRanks> {
  static Variable forward(AutogradContext*, const Variable& values, TensorGroup* group) {
    return group->sum(values);
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    return {gradients[0], Variable()};
  }
};

struct GatherColumns : torch::autograd::Function<GatherColumns> {
  static Variable forward(AutogradContext* context, const Variable& own, int64_t columns,
                          TensorGroup* group) {
    keep(context, group);
    return group->gather(own, columns);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {columns_of(gradients[0], kept_group(context)), Variable(), Variable()};
  }
};

struct OwnColumns : torch::autograd::Function<OwnColumns> {
  static Variable forward(AutogradContext* context, const Variable& whole, TensorGroup* group) {
    keep(context, group);
    context->saved_data[kColumns] = whole.size(-1);
    return columns_of(whole, *group).clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const int64_t columns = context->saved_data[kColumns].toInt();
    return {kept_group(context).gather(gradients[0], columns), Variable()};
  }
};

}  // namespace

TensorRange range_of(int64_t extent, int rank, int ranks) {
  const int64_t least = extent / ranks, more = extent % ranks;
  return {rank * least + std::min<int64_t>(rank, more), least + (rank < more ? 1 : 0)};
}

at::Tensor TensorGroup::sum(const at::Tensor& values) {
  at::Tensor result = values.detach().clone(at::MemoryFormat::Contiguous);
  if (!result_) return result;
  result_ = group_.run(collectives::calls::allreduce(buffer_of(result), {.name = "activations"}));
  return result;
}

at::Tensor TensorGroup::gather(const at::Tensor& own, int64_t columns) {
  const at::Tensor mine = own.detach().contiguous();
  std::vector<int64_t> sizes = mine.sizes().vec();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) rows *= sizes[i];
  CHECK(sizes.back() == range_of(columns, rank(), size()).count,
        "`own` has the columns of this rank");
  const at::Tensor all = at::zeros({rows * columns}, at::kFloat);
  std::vector<size_t> counts;
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (int each = 0; each < size(); ++each) {
    sizes.back() = range_of(columns, each, size()).count;
    parts.push_back(all.narrow(0, begin, rows * sizes.back()).view(sizes));
    counts.push_back(size_t(rows * sizes.back()));
    begin += rows * sizes.back();
  }
  if (result_) {
    collectives::Call call =
        collectives::calls::all_gather(buffer_of(mine), buffer_of(all), std::move(counts));
    call.reducing.name = "columns";
    result_ = group_.run(call);
  }
  return at::cat(parts, -1);
}

at::Tensor column_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         TensorGroup& group) {
  return at::linear(CopyToRanks::apply(input, &group), weight, bias);
}

at::Tensor row_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      TensorGroup& group) {
  const at::Tensor sum = SumOfRanks::apply(at::linear(input, weight), &group);
  return bias.defined() ? sum + bias : sum;
}

at::Tensor vocabulary_embedding(const at::Tensor& indices, const at::Tensor& weight,
                                int64_t vocabulary, TensorGroup& group) {
  const TensorRange range = range_of(vocabulary, group.rank(), group.size());
  CHECK(weight.size(0) == range.count, "`weight` has this rank's rows of the table");
  const at::Tensor elsewhere =
      at::logical_or(indices.lt(range.begin), indices.ge(range.begin + range.count));
  if (range.count == 0) {  // more ranks than words
    std::vector<int64_t> sizes = indices.sizes().vec();
    sizes.push_back(weight.size(1));
    return SumOfRanks::apply(at::zeros(sizes, at::kFloat) + weight.sum(), &group);
  }
  const at::Tensor rows = at::embedding(weight, (indices - range.begin).masked_fill(elsewhere, 0));
  return SumOfRanks::apply(rows.masked_fill(elsewhere.unsqueeze(-1), 0), &group);
}

at::Tensor gather_columns(const at::Tensor& own, int64_t columns, TensorGroup& group) {
  return GatherColumns::apply(own, columns, &group);
}

at::Tensor own_columns(const at::Tensor& whole, TensorGroup& group) {
  return OwnColumns::apply(whole, &group);
}

}  // namespace trainyard::parallel
