#include "parallel/sharded_model.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "parallel/agreement.hpp"

namespace trainyard::parallel {
namespace {

constexpr uint64_t kGather = 1, kReduce = 2;  // operations, for the digest

// Sets the memory of all tensors that share the storage of `flat`; null: no memory.
void exchange_memory(const at::Tensor& flat, void* values) {
  flat.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
      c10::DataPtr(values, c10::Device(c10::DeviceType::CPU)));
}

at::Tensor first_of(const at::Tensor& values, size_t bytes) {
  return values.narrow(0, 0, int64_t(bytes / sizeof(float)));
}

}  // namespace

size_t ShardedModel::memory_held(size_t parameters, size_t largest_unit, int ranks, Method method) {
  return parameters / size_t(ranks) * (2 + size_t(numbers_held(method))) +
         (kGatheredUnits + kGradientUnits) * largest_unit;
}

size_t ShardedModel::bytes_sent(size_t parameters, size_t last_unit, int ranks, int passes) {
  return size_t(passes) * ((3 * parameters - last_unit) / size_t(ranks) * size_t(ranks - 1));
}

ShardedModel::ShardedModel(collectives::Group& group, OptimizerSettings settings)
    : group_(group), settings_(settings) {}

ShardedModel::~ShardedModel() {
  const at::NoGradGuard no_gradients;
  while (!reducing_.empty()) wait_for_oldest();
  for (size_t i = 0; i < units_.size(); ++i) {
    release(i);
    units_[i].hooks.reset();
    for (const at::Tensor& each : units_[i].parameters)
      at::Tensor(each).mutable_grad() = at::Tensor();
  }
}

Result<void> ShardedModel::add_unit(std::vector<NamedTensor> parameters) {
  CHECK(!optimizer_ && !parameters.empty(), "units with parameters are added before begin()");
  const at::NoGradGuard no_gradients;
  Unit unit;
  std::vector<size_t> bytes;
  for (const auto& [name, tensor] : parameters) {
    unit.parameters.push_back(tensor);
    bytes.push_back(tensor.nbytes());
  }
  check_parameters(unit.parameters);
  TRY(compare_shapes(unit.parameters, group_));
  std::vector<int32_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  unit.plan = plan_sharded_buckets(bytes, order, {SIZE_MAX, SIZE_MAX}, group_.size()).front();
  unit.weights = std::make_unique<FlatMemory>(group_, unit.plan.bytes / size_t(group_.size()));
  unit.sums = std::make_unique<FlatMemory>(group_, unit.plan.bytes / size_t(group_.size()));
  {
    const FlatMemory all(group_, group_.rank() == 0 ? unit.plan.bytes : 0);
    if (group_.rank() == 0)
      for (size_t i = 0; i < parameters.size(); ++i)
        view_in(all.values(), unit.plan.begins[i], unit.parameters[i]).copy_(unit.parameters[i]);
    TRY(group_
            .run(collectives::calls::scatter(buffer_of(all.values()),
                                             buffer_of(unit.weights->values()), 0))
            .in("sending the parameters of rank 0"));
  }
  unit.flat = at::from_blob(nullptr, {int64_t(unit.plan.bytes / sizeof(float))}, at::kFloat);
  const size_t index = units_.size();
  // Adds the hooks before the parameters become empty, since libtorch stores their shapes for the
  // gradients.
  unit.hooks = std::make_unique<GradientHooks>(
      unit.parameters, [this, index](size_t) { gradient_begins(index); },
      [this, index](size_t) { gradient_is_ready(index); });
  for (size_t i = 0; i < parameters.size(); ++i) {
    unit.views.push_back(view_in(unit.flat, unit.plan.begins[i], unit.parameters[i]));
    unit.plan.gradients[i] += shapes_.size() - i;
    shapes_.push_back({parameters[i].name, unit.parameters[i].sizes().vec()});
    unit.parameters[i].set_data(at::empty({0}, at::kFloat));
  }
  units_.push_back(std::move(unit));
  return ok();
}

// Creates the optimizer and the buffers, whose sizes depend on all units.
void ShardedModel::prepare() {
  if (optimizer_) return;
  std::vector<BucketShard> shards;
  size_t largest = 0;
  for (const Unit& each : units_) {
    shards.push_back({each.plan, each.weights->values(), each.sums->values()});
    largest = std::max(largest, each.plan.bytes);
  }
  optimizer_.emplace(settings_, shapes_, shards, group_);
  gathered_.emplace(group_, largest);
  gradients_.emplace(group_, largest);
}

void ShardedModel::note(uint64_t operation, size_t unit) {
  order_ = fnv1a_step(fnv1a_step(order_, operation), unit);
}

// -- parameters

void ShardedModel::start_gather(size_t index) {
  Unit& unit = units_[index];
  note(kGather, index);
  unit.gathered = gathered_->take();
  collectives::Call call =
      collectives::calls::all_gather(buffer_of(unit.weights->values()),
                                     buffer_of(first_of(unit.gathered->values(), unit.plan.bytes)));
  call.reducing.name = "weights of unit " + std::to_string(index);
  unit.gather = group_.start(std::move(call));
}

void ShardedModel::prefetch(size_t unit) {
  if (units_[unit].gathered || gathered_->taken() >= kGatheredUnits) return;
  start_gather(unit);
  ++prefetched_;
}

// After an error the parameters have memory, too, with undefined values: a backward pass in
// progress reads them until it ends.
Result<void> ShardedModel::make_available(size_t index) {
  Unit& unit = units_[index];
  if (!unit.gathered) start_gather(index);
  if (!unit.gather) return ok();
  Result<void> done = unit.gather->wait();
  unit.gather.reset();
  exchange_memory(unit.flat, unit.gathered->values().data_ptr());
  for (size_t i = 0; i < unit.parameters.size(); ++i) unit.parameters[i].set_data(unit.views[i]);
  return done;
}

void ShardedModel::release(size_t index) {
  Unit& unit = units_[index];
  if (!unit.gathered) return;
  if (unit.gather) {
    auto done = unit.gather->wait();
    if (!done && failure_) failure_ = std::move(done);
    unit.gather.reset();
  }
  for (const at::Tensor& each : unit.parameters)
    at::Tensor(each).set_data(at::empty({0}, at::kFloat));
  exchange_memory(unit.flat, nullptr);
  gathered_->give_back(unit.gathered);
  unit.gathered = nullptr;
}

Result<at::Tensor> ShardedModel::run(size_t index, const at::Tensor& input,
                                     const Forward& forward) {
  CHECK(index < units_.size(), "units are numbered in the order of add_unit");
  prepare();
  TRY(Result<void>(failure_));
  {
    const at::NoGradGuard no_gradients;
    TRY(make_available(index));
    if (index + 1 < units_.size()) prefetch(index + 1);
  }
  at::Tensor output = forward(input);
  const bool trains = at::GradMode::is_enabled() && output.requires_grad();
  if (trains)
    output.register_hook([this, index](const at::TensorBase&) -> void { before_backward(index); });
  if (!trains || index + 1 < units_.size()) {
    const at::NoGradGuard no_gradients;
    release(index);
  }
  return output;
}

// -- gradients

void ShardedModel::begin() {
  prepare();
  CHECK(reducing_.empty(), "begin() is called after the previous step has ended");
  passes_done_ = 0;
  begin_pass();
}

void ShardedModel::begin_pass() {
  for (Unit& each : units_) each.missing = each.parameters.size();
  unreduced_ = units_.size();
  order_ = kFnvBasis;
}

void ShardedModel::before_backward(size_t unit) {
  const at::NoGradGuard no_gradients;
  auto done = make_available(unit);
  if (!done && failure_) failure_ = std::move(done);
  if (unit > 0) prefetch(unit - 1);
}

// Allocates the unit's gradients before the first one is accumulated.
void ShardedModel::gradient_begins(size_t index) {
  const at::NoGradGuard no_gradients;
  Unit& unit = units_[index];
  if (unit.gradients) return;
  CHECK(index < unreduced_, "end_pass() follows every backward pass");
  while (gradients_->taken() >= kGradientUnits && !reducing_.empty()) wait_for_oldest();
  unit.gradients = gradients_->take();
  first_of(unit.gradients->values(), unit.plan.bytes).zero_();
  for (size_t i = 0; i < unit.parameters.size(); ++i)
    unit.parameters[i].mutable_grad() =
        view_in(unit.gradients->values(), unit.plan.begins[i], unit.views[i]);
}

void ShardedModel::gradient_is_ready(size_t unit) {
  if (--units_[unit].missing != 0) return;
  const at::NoGradGuard no_gradients;
  release(unit);
  start_full_units(false);
}

// All ranks start the units in the same order.
void ShardedModel::start_full_units(bool all) {
  while (unreduced_ > 0 && (all || units_[unreduced_ - 1].missing == 0)) {
    const size_t unit = unreduced_ - 1;
    start_reduction(unit);
    unreduced_ = unit;
  }
}

void ShardedModel::start_reduction(size_t index) {
  Unit& unit = units_[index];
  if (!unit.gradients) gradient_begins(index);  // no gradient was computed: all are 0
  const at::Tensor values = first_of(unit.gradients->values(), unit.plan.bytes);
  if (passes_done_ > 0) {
    const int64_t count = unit.sums->values().numel();
    values.narrow(0, count * group_.rank(), count).add_(unit.sums->values());
  }
  note(kReduce, index);
  collectives::ReduceOptions sum;
  sum.name = "gradients of unit " + std::to_string(index);
  reducing_.push_back(
      {index, group_.start(collectives::calls::reduce_scatter(
                  buffer_of(values), buffer_of(unit.sums->values()), std::move(sum)))});
}

void ShardedModel::wait_for_oldest() {
  auto done = reducing_.front().handle.wait();
  Unit& unit = units_[reducing_.front().unit];
  reducing_.erase(reducing_.begin());
  if (!done && failure_) failure_ = std::move(done);
  gradients_->give_back(unit.gradients);
  unit.gradients = nullptr;
  for (const at::Tensor& each : unit.parameters) at::Tensor(each).mutable_grad() = at::Tensor();
}

Result<void> ShardedModel::end_pass() {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < units_.size(); ++i) release(i);
  start_full_units(true);
  while (!reducing_.empty()) wait_for_oldest();
  TRY(Result<void>(failure_));
  TRY(compare_order());
  ++passes_done_;
  begin_pass();
  return ok();
}

// Units of equal size that are reduced in different orders would give wrong sums without an error.
Result<void> ShardedModel::compare_order() {
  std::vector<uint64_t> all(static_cast<size_t>(group_.size()));
  TRY(group_
          .all_gather(std::as_bytes(std::span(&order_, 1)), std::as_writable_bytes(std::span(all)))
          .in("comparing the order of units"));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all[0]) {
      failure_ = conflict("rank " + std::to_string(rank) +
                          " ran the units of the model in a different order from rank 0");
      break;
    }
  return failure_;
}

Result<void> ShardedModel::step(double rate, double gradient_scale) {
  CHECK(passes_done_ > 0, "a step follows begin(), a backward pass and end_pass()");
  TRY(Result<void>(failure_));
  return optimizer_->step(rate, gradient_scale);
}

// -- checkpoints

Result<void> ShardedModel::save(const std::string& prefix) const {
  CHECK(optimizer_, "a model is saved after begin() or load()");
  return optimizer_->save(prefix);
}

Result<void> ShardedModel::load(const std::string& prefix) {
  const at::NoGradGuard no_gradients;
  prepare();
  for (size_t i = 0; i < units_.size(); ++i) release(i);
  return optimizer_->load(prefix);
}

size_t ShardedModel::bytes_held() const {
  size_t bytes = 0;
  for (const Unit& each : units_) bytes += each.weights->bytes() + each.sums->bytes();
  if (optimizer_)
    bytes += optimizer_->bytes_held() + gathered_->bytes_held() + gradients_->bytes_held();
  return bytes;
}

}  // namespace trainyard::parallel
