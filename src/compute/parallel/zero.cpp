#include "parallel/zero.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "parallel/agreement.hpp"

namespace trainyard::parallel {
namespace {

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& each : named) tensors.push_back(each.tensor);
  return tensors;
}

}  // namespace

size_t memory_held(ZeroStage stage, size_t parameters, size_t largest_bucket, int ranks,
                   Method method) {
  const size_t gradients =
      stage == ZeroStage::optimizer_state ? parameters : Zero::kGradientBuckets * largest_bucket;
  return parameters + gradients + parameters / size_t(ranks) * (1 + size_t(numbers_held(method)));
}

size_t bytes_sent(ZeroStage stage, size_t parameters, int ranks, int passes) {
  const size_t once = parameters / size_t(ranks) * size_t(ranks - 1);
  return once * (stage == ZeroStage::optimizer_state ? 1 : size_t(passes)) + once;
}

Result<std::unique_ptr<Zero>> Zero::make(std::vector<NamedTensor> parameters,
                                         collectives::Group& group, ZeroSettings settings) {
  std::unique_ptr<Zero> zero(new Zero(std::move(parameters), group, std::move(settings)));
  TRY(zero->broadcast_parameters());
  return zero;
}

Zero::Zero(std::vector<NamedTensor> parameters, collectives::Group& group, ZeroSettings settings)
    : names_(std::move(parameters)),
      parameters_(tensors_of(names_)),
      group_(group),
      settings_(std::move(settings)) {
  check_parameters(parameters_);
  make_buckets();
  std::vector<ShardedParameter> shapes;
  for (const auto& [name, tensor] : names_) shapes.push_back({name, tensor.sizes().vec()});
  std::vector<BucketShard> shards;
  for (const BucketMemory& each : buckets_)
    shards.push_back({each.plan, own_shard(each.weights->values()), each.sums->values()});
  optimizer_.emplace(settings_.optimizer, std::move(shapes), shards, group_);
  hooks_.emplace(
      parameters_, [this](size_t each) { gradient_begins(each); },
      [this](size_t each) { gradient_is_ready(each); });
  begin();
}

Zero::~Zero() {
  while (!reducing_.empty()) wait_for_oldest();
  hooks_.reset();
  const at::NoGradGuard no_gradients;
  for (at::Tensor each : parameters_) {  // they are views of the buckets, which are freed
    each.mutable_grad() = at::Tensor();
    each.set_data(each.detach().clone());
  }
}

Result<void> Zero::broadcast_parameters() {
  TRY(compare_shapes(parameters_, group_));
  for (const BucketMemory& each : buckets_)
    TRY(group_.run(collectives::calls::broadcast(buffer_of(each.weights->values()), 0))
            .in("sending the parameters of rank 0"));
  return ok();
}

void Zero::make_buckets() {
  const at::NoGradGuard no_gradients;
  std::vector<size_t> bytes;
  for (const at::Tensor& each : parameters_) bytes.push_back(each.nbytes());
  std::vector<int32_t> order = settings_.order;
  if (order.empty()) {
    order.resize(parameters_.size());
    std::iota(order.rbegin(), order.rend(), 0);
  }
  bucket_of_.assign(parameters_.size(), 0);
  size_t largest_bytes = 0;
  for (Bucket& plan : plan_sharded_buckets(bytes, order, settings_.buckets, group_.size())) {
    BucketMemory memory;
    memory.weights = std::make_unique<FlatMemory>(group_, plan.bytes);
    memory.sums = std::make_unique<FlatMemory>(group_, plan.bytes / size_t(group_.size()));
    if (settings_.stage == ZeroStage::optimizer_state)
      memory.own_gradients = std::make_unique<FlatMemory>(group_, plan.bytes);
    for (size_t i = 0; i < plan.gradients.size(); ++i) {
      at::Tensor parameter = parameters_[plan.gradients[i]];
      const at::Tensor weights = view_in(memory.weights->values(), plan.begins[i], parameter);
      weights.copy_(parameter);
      parameter.set_data(weights);
      bucket_of_[plan.gradients[i]] = buckets_.size();
    }
    largest_bytes = std::max(largest_bytes, plan.bytes);
    memory.plan = std::move(plan);
    buckets_.push_back(std::move(memory));
  }
  gradients_.emplace(group_, largest_bytes);
  if (settings_.stage == ZeroStage::optimizer_state)
    for (size_t i = 0; i < buckets_.size(); ++i) attach_gradients(i, *buckets_[i].own_gradients);
}

at::Tensor Zero::own_shard(const at::Tensor& values) const {
  const int64_t count = values.numel() / group_.size();
  return values.narrow(0, count * group_.rank(), count);
}

// The gradients of the bucket are views of the memory from now on.
void Zero::attach_gradients(size_t bucket, FlatMemory& memory) {
  BucketMemory& each = buckets_[bucket];
  each.gradients = &memory;
  for (size_t i = 0; i < each.plan.gradients.size(); ++i) {
    at::Tensor parameter = parameters_[each.plan.gradients[i]];
    parameter.mutable_grad() = view_in(memory.values(), each.plan.begins[i], parameter);
  }
}

void Zero::detach_gradients(size_t bucket) {
  BucketMemory& each = buckets_[bucket];
  each.gradients = nullptr;
  for (const size_t i : each.plan.gradients)
    at::Tensor(parameters_[i]).mutable_grad() = at::Tensor();
}

void Zero::begin(int passes) {
  CHECK(passes >= 1, "a step has at least one backward pass");
  CHECK(reducing_.empty(), "begin() is called after the previous step has ended");
  const at::NoGradGuard no_gradients;
  passes_ = passes;
  passes_done_ = 0;
  for (const BucketMemory& each : buckets_)
    if (each.own_gradients) each.own_gradients->values().zero_();
  begin_pass();
}

void Zero::begin_pass() {
  const bool each_pass = settings_.stage == ZeroStage::gradients;
  started_ = 0;
  if (!each_pass && passes_done_ > 0) return;
  for (BucketMemory& each : buckets_) each.missing = each.plan.gradients.size();
  passes_missing_.assign(parameters_.size(), each_pass ? 1 : passes_);
}

// In stage 2, gives a bucket memory before its first gradient is accumulated.
void Zero::gradient_begins(size_t parameter) {
  const at::NoGradGuard no_gradients;
  const size_t bucket = bucket_of_[parameter];
  if (buckets_[bucket].gradients) return;
  CHECK(bucket >= started_, "end_pass() follows every backward pass");
  while (gradients_->taken() >= kGradientBuckets && !reducing_.empty()) wait_for_oldest();
  FlatMemory& memory = *gradients_->take();
  memory.values().narrow(0, 0, int64_t(buckets_[bucket].plan.bytes / sizeof(float))).zero_();
  attach_gradients(bucket, memory);
}

void Zero::gradient_is_ready(size_t parameter) {
  if (--passes_missing_[parameter] != 0) return;
  --buckets_[bucket_of_[parameter]].missing;
  start_full_buckets(false);
}

// All ranks start the buckets in the same order.
void Zero::start_full_buckets(bool all) {
  for (; started_ < buckets_.size() && (all || buckets_[started_].missing == 0); ++started_)
    start(started_);
}

void Zero::start(size_t bucket) {
  const at::NoGradGuard no_gradients;
  BucketMemory& each = buckets_[bucket];
  if (!each.gradients) gradient_begins(each.plan.gradients.front());  // no gradient: all are 0
  const at::Tensor values =
      each.gradients->values().narrow(0, 0, int64_t(each.plan.bytes / sizeof(float)));
  const bool each_pass = settings_.stage == ZeroStage::gradients;
  // The sums of earlier passes are reduced again, which needs no memory.
  if (each_pass && passes_done_ > 0) own_shard(values).add_(each.sums->values());
  collectives::ReduceOptions sum;
  sum.name = "gradients of bucket " + std::to_string(bucket);
  reducing_.push_back(
      {bucket, group_.start(collectives::calls::reduce_scatter(
                   buffer_of(values), buffer_of(each.sums->values()), std::move(sum)))});
}

void Zero::wait_for_oldest() {
  auto done = reducing_.front().handle.wait();
  const size_t bucket = reducing_.front().bucket;
  reducing_.erase(reducing_.begin());
  if (!done && failure_) failure_ = std::move(done);
  if (settings_.stage != ZeroStage::gradients) return;
  gradients_->give_back(buckets_[bucket].gradients);
  detach_gradients(bucket);
}

Result<void> Zero::end_pass() {
  CHECK(passes_done_ < passes_, "begin() announces the number of passes");
  const bool each_pass = settings_.stage == ZeroStage::gradients;
  const bool last = passes_done_ + 1 == passes_;
  if (each_pass || last) start_full_buckets(true);
  if (each_pass && !last)
    while (!reducing_.empty()) wait_for_oldest();  // because the next pass adds to the sums
  ++passes_done_;
  if (!last) begin_pass();
  return failure_;
}

Result<void> Zero::step(double rate, double gradient_scale) {
  CHECK(passes_done_ == passes_, "end_pass() follows every backward pass");
  while (!reducing_.empty()) wait_for_oldest();
  TRY(Result<void>(failure_));
  TRY(optimizer_->step(rate, gradient_scale));
  return gather_weights();
}

Result<void> Zero::load(const std::string& prefix) {
  TRY(optimizer_->load(prefix));
  return gather_weights();
}

Result<void> Zero::gather_weights() {
  std::vector<collectives::Handle> handles;
  for (const BucketMemory& each : buckets_) {
    const at::Tensor& all = each.weights->values();
    collectives::Call call =
        collectives::calls::all_gather(buffer_of(own_shard(all)), buffer_of(all));
    call.reducing.name = "weights of bucket " + std::to_string(handles.size());
    handles.push_back(group_.start(std::move(call)));
  }
  Result<void> result = ok();
  for (collectives::Handle& handle : handles) {
    auto done = handle.wait();  // waits for each, since the group uses the memory until then
    if (!done && result) result = std::move(done);
  }
  return result;
}

size_t Zero::bytes_held() const {
  size_t bytes = optimizer_->bytes_held();
  for (const BucketMemory& each : buckets_) {
    bytes += each.weights->bytes() + each.sums->bytes();
    if (each.own_gradients) bytes += each.own_gradients->bytes();
  }
  return bytes + gradients_->bytes_held();
}

}  // namespace trainyard::parallel
