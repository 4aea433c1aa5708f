#include "parallel/sharded_optimizer.hpp"

#include <cstdio>
#include <map>
#include <utility>

#include "checkpoint/shards.hpp"

namespace trainyard::parallel {
namespace {

std::vector<size_t> bytes_of_parameters(const std::vector<ShardedParameter>& parameters) {
  std::vector<size_t> bytes;
  for (const ShardedParameter& each : parameters) bytes.push_back(each.bytes());
  return bytes;
}

std::vector<OptimizedPart> parts_of(const std::vector<OwnPart>& own) {
  std::vector<OptimizedPart> parts;
  for (const OwnPart& each : own) parts.push_back(each.part);
  return parts;
}

std::vector<OwnPart> own_parts(const std::vector<ShardedParameter>& parameters,
                               const std::vector<BucketShard>& shards, int rank, int ranks) {
  const at::NoGradGuard no_gradients;
  const std::vector<size_t> bytes = bytes_of_parameters(parameters);
  std::vector<OwnPart> own;
  for (const BucketShard& shard : shards)
    for (const ShardPart& place : parts_of_shard(shard.bucket, bytes, rank, ranks)) {
      const auto begin = int64_t(place.position), count = int64_t(place.count);
      const ShardedParameter& parameter = parameters[place.parameter];
      own.push_back(
          {place,
           {parameter.name, shard.weights.narrow(0, begin, count),
            shard.gradients.narrow(0, begin, count), place.parameter, parameter.sizes.size() > 1}});
    }
  return own;
}

std::string path_of_part(const std::string& prefix, int64_t steps, int rank, int ranks) {
  char text[64];
  std::snprintf(text, sizeof text, "-%lld-%05d-of-%05d.safetensors", static_cast<long long>(steps),
                rank, ranks);
  return prefix + text;
}

std::string path_of_index(const std::string& prefix) { return prefix + ".safetensors"; }

// Returns the largest valid size of a file: parameters with two numbers of state each, and a
// header.
size_t file_bytes_max(const std::vector<ShardedParameter>& parameters) {
  size_t bytes = checkpoint::kHeaderBytesMax + sizeof(uint64_t);
  for (const ShardedParameter& each : parameters) bytes += 3 * each.bytes();
  return bytes;
}

}  // namespace

size_t ShardedParameter::bytes() const {
  size_t elements = 1;
  for (const int64_t extent : sizes) elements *= size_t(extent);
  return elements * sizeof(float);
}

ShardedOptimizer::ShardedOptimizer(OptimizerSettings settings,
                                   std::vector<ShardedParameter> parameters,
                                   const std::vector<BucketShard>& shards,
                                   collectives::Group& group)
    : parameters_(std::move(parameters)),
      group_(group),
      own_(own_parts(parameters_, shards, group.rank(), group.size())),
      optimizer_(settings, parts_of(own_), parameters_.size()) {}

Result<void> ShardedOptimizer::step(double rate, double gradient_scale) {
  return optimizer_.step(rate, gradient_scale, [this](std::span<double> values) {
    return group_.run(collectives::calls::allreduce(collectives::buffer_view(values),
                                                    {.name = "norms of the parameters"}));
  });
}

size_t ShardedOptimizer::bytes_held() const {
  size_t bytes = 0;
  for (const NamedTensor& each : optimizer_.state()) bytes += each.tensor.nbytes();
  return bytes;
}

std::vector<ShardedOptimizer::StoredPart> ShardedOptimizer::stored_parts() const {
  std::vector<StoredPart> all;
  std::map<std::string, at::Tensor> state;
  for (const NamedTensor& each : optimizer_.state()) state[each.name] = each.tensor;
  for (const auto& [place, part] : own_) {
    const ShardedParameter& parameter = parameters_[place.parameter];
    const std::vector<uint64_t> shape(parameter.sizes.begin(), parameter.sizes.end());
    all.push_back({"weights." + parameter.name, shape, place.begin, part.weights});
    for (const char* kind : {"momentum.", "square."}) {
      const auto found = state.find(kind + parameter.name);
      if (found != state.end()) all.push_back({found->first, shape, place.begin, found->second});
    }
  }
  return all;
}

Result<void> ShardedOptimizer::agree(const char* doing, Result<void> mine) const {
  const auto all = TRY(group_.all_gather(mine ? std::string() : mine.error().message).in(doing));
  if (!mine) return std::move(mine).error().in(doing);
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      return Error{Kind::unavailable, "rank " + std::to_string(rank) + ": " + all[rank]}.in(doing);
  return ok();
}

Result<void> ShardedOptimizer::write_files(const std::string& prefix) const {
  checkpoint::ShardFile file{group_.rank(), group_.size(), steps_done(), {}};
  for (const StoredPart& each : stored_parts())
    file.shards[each.name] = {
        checkpoint::Type::f32,
        each.shape,
        each.begin,
        {static_cast<const char*>(each.values.data_ptr()), each.values.nbytes()}};
  return checkpoint::save(checkpoint::encode_shards(file),
                          path_of_part(prefix, steps_done(), file.rank, file.ranks));
}

Result<void> ShardedOptimizer::save(const std::string& prefix) const {
  TRY(agree("writing the shards of a checkpoint", write_files(prefix)));
  Result<void> indexed = ok();
  if (group_.rank() == 0)
    indexed = checkpoint::save(
        checkpoint::encode_shards({.rank = 0, .ranks = group_.size(), .steps = steps_done()}),
        path_of_index(prefix));
  return agree("writing the index of a checkpoint", std::move(indexed));
}

Result<int64_t> ShardedOptimizer::read_files(const std::string& prefix) {
  const auto index = TRY(checkpoint::load(path_of_index(prefix), checkpoint::kHeaderBytesMax));
  const auto written = TRY(checkpoint::decode_shards(index.contents).in(path_of_index(prefix)));
  std::map<std::string, checkpoint::WantedShard> wanted;
  for (const StoredPart& each : stored_parts())
    wanted[each.name] = {checkpoint::Type::f32, each.shape, each.begin,
                         uint64_t(each.values.numel()), static_cast<char*>(each.values.data_ptr())};
  for (int rank = 0; rank < written.ranks; ++rank) {
    const std::string path = path_of_part(prefix, written.steps, rank, written.ranks);
    const auto loaded = TRY(checkpoint::load(path, file_bytes_max(parameters_)));
    const auto file = TRY(checkpoint::decode_shards(loaded.contents).in(path));
    if (file.steps != written.steps || file.rank != rank || file.ranks != written.ranks)
      return corrupt(path + ": rank, ranks and steps differ from the file's name");
    TRY(checkpoint::copy_shards(file, wanted).in(path));
  }
  TRY(checkpoint::check_complete(wanted).in(prefix));
  return written.steps;
}

Result<void> ShardedOptimizer::load(const std::string& prefix) {
  const auto steps = read_files(prefix);
  TRY(agree("reading a checkpoint", steps ? Result<void>(ok()) : Result<void>(steps.error())));
  // Another process may have written a newer checkpoint between two reads.
  const auto all = TRY(group_.all_gather(std::to_string(*steps)).in("reading a checkpoint"));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return conflict("rank 0 has read the checkpoint of step " + all[0] + ", but rank " +
                      std::to_string(rank) + " has read step " + all[rank]);
  optimizer_.set_steps_done(*steps);
  return ok();
}

}  // namespace trainyard::parallel
