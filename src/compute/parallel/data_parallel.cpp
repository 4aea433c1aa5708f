#include "parallel/data_parallel.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "parallel/agreement.hpp"

namespace trainyard::parallel {
namespace {

std::vector<int32_t> reversed(size_t count) {
  std::vector<int32_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace

Result<std::unique_ptr<DataParallel>> DataParallel::make(std::vector<at::Tensor> parameters,
                                                         collectives::Group& group,
                                                         BucketLimits limits) {
  std::unique_ptr<DataParallel> parallel(new DataParallel(std::move(parameters), group, limits));
  TRY(parallel->compare_and_broadcast());
  return parallel;
}

DataParallel::DataParallel(std::vector<at::Tensor> parameters, collectives::Group& group,
                           BucketLimits limits)
    : parameters_(std::move(parameters)), group_(group), limits_(limits) {
  check_parameters(parameters_);
  for (const at::Tensor& each : parameters_) bytes_.push_back(each.nbytes());
  arrange(reversed(parameters_.size()));
  hooks_.emplace(parameters_, nullptr, [this](size_t each) { gradient_is_ready(each); });
  begin();
}

DataParallel::~DataParallel() {
  hooks_.reset();
  // The gradients are views of the buckets, which are freed now.
  for (const at::Tensor& each : parameters_) at::Tensor(each).mutable_grad() = at::Tensor();
}

Result<void> DataParallel::compare_and_broadcast() {
  TRY(compare_shapes(parameters_, group_));
  for (const at::Tensor& each : parameters_)
    TRY(group_.broadcast({static_cast<std::byte*>(each.data_ptr()), each.nbytes()}, 0)
            .in("sending the parameters of rank 0"));
  return ok();
}

void DataParallel::arrange(const std::vector<int32_t>& order) {
  const at::NoGradGuard no_gradients;
  auto former = std::move(memory_);  // freed after its gradients are copied
  memory_.clear();
  plan_ = plan_buckets(bytes_, order, limits_);
  bucket_of_.assign(parameters_.size(), 0);
  for (size_t bucket = 0; bucket < plan_.size(); ++bucket) {
    const Bucket& plan = plan_[bucket];
    Memory memory;
    memory.buffer = std::make_unique<collectives::GroupBuffer>(group_);
    std::byte* bytes = memory.buffer->bytes(plan.bytes);
    memory.values = at::from_blob(bytes, {int64_t(plan.bytes / sizeof(float))}, at::kFloat);
    memory.values.zero_();
    for (size_t i = 0; i < plan.gradients.size(); ++i) {
      at::Tensor parameter = parameters_[plan.gradients[i]];
      at::Tensor gradient = at::from_blob(bytes + plan.begins[i], parameter.sizes(), at::kFloat);
      if (parameter.grad().defined()) gradient.copy_(parameter.grad());
      parameter.mutable_grad() = gradient;
      bucket_of_[plan.gradients[i]] = bucket;
    }
    memory_.push_back(std::move(memory));
  }
}

void DataParallel::begin(int passes) {
  CHECK(passes >= 1, "a step has at least one backward pass");
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < memory_.size(); ++i) {
    memory_[i].values.zero_();
    memory_[i].missing = plan_[i].gradients.size();
  }
  passes_missing_.assign(parameters_.size(), passes);
  handles_.clear();
  started_ = 0;
  order_seen_.clear();
}

void DataParallel::gradient_is_ready(size_t parameter) {
  if (--passes_missing_[parameter] != 0) return;
  if (!order_agreed_) order_seen_.push_back(int32_t(parameter));
  --memory_[bucket_of_[parameter]].missing;
  start_full_buckets(false);
}

// All ranks start the buckets in the same order.
void DataParallel::start_full_buckets(bool all) {
  for (; started_ < memory_.size() && (all || memory_[started_].missing == 0); ++started_) {
    if (group_.size() == 1) continue;
    const at::Tensor& values = memory_[started_].values;
    collectives::ReduceOptions sum;
    sum.name = "bucket " + std::to_string(started_);
    handles_.push_back(group_.start(collectives::calls::allreduce(
        collectives::BufferView{values.data_ptr(), size_t(values.numel()), collectives::Type::f32},
        std::move(sum))));
  }
}

Result<void> DataParallel::finish() {
  start_full_buckets(true);
  Result<void> result = ok();
  for (collectives::Handle& handle : handles_) {
    auto done = handle.wait();  // waits for each, since the group uses the buffers until then
    if (!done && result) result = std::move(done);
  }
  handles_.clear();
  TRY(std::move(result));
  return order_agreed_ ? ok() : agree_on_order();
}

Result<void> DataParallel::agree_on_order() {
  order_agreed_ = true;
  std::vector<bool> seen(parameters_.size());
  for (const int32_t parameter : order_seen_) seen[size_t(parameter)] = true;
  // Parameters without a gradient are reduced last.
  for (const int32_t parameter : reversed(parameters_.size()))
    if (!seen[size_t(parameter)]) order_seen_.push_back(parameter);
  TRY(group_.broadcast(std::as_writable_bytes(std::span(order_seen_)), 0)
          .in("agreeing on the order of gradients"));
  std::vector<int32_t> sorted = order_seen_;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != int32_t(i))
      return corrupt("the order of gradients from rank 0 does not list each of them once");
  arrange(order_seen_);
  return ok();
}

}  // namespace trainyard::parallel
