#include "gradients/compress/compressor.hpp"

#include <algorithm>
#include <cstring>

#include "base/fnv.hpp"
#include "collectives/plan/plan.hpp"
#include "gradients/compress/casts.hpp"
#include "gradients/compress/int8.hpp"

namespace trainyard::gradients {
namespace {

using collectives::plan::Range;

// Equal on all ranks and in all runs.
uint64_t seed_of(std::string_view key) { return fnv1a(key); }

// Returns the elements of a tensor that a rank adds up: whole blocks.
Range piece_of(const CompressedTensor& tensor, int rank, int ranks) {
  const size_t elements = tensor.shape.elements();
  const Range blocks = collectives::plan::piece(int8_blocks(elements), rank, ranks);
  return {std::min(elements, blocks.begin * kInt8BlockElements),
          std::min(elements, blocks.end * kInt8BlockElements)};
}

// owed += input * prescale
void take_in(const CompressedTensor& tensor, float* owed) {
  if (!tensor.input) return;
  const auto factor = float(tensor.prescale);
  for (size_t i = 0; i < tensor.shape.elements(); ++i) owed[i] += tensor.input[i] * factor;
}

void multiply(float* values, size_t elements, double factor) {
  if (factor == 1) return;
  for (size_t i = 0; i < elements; ++i) values[i] *= float(factor);
}

collectives::Call named(collectives::Call call, std::string_view name) {
  call.reducing.name = name;
  return call;
}

}  // namespace

Compressor::Memory& Compressor::memory_of(const CompressedTensor& tensor, Compression compression) {
  Memory& memory = memories_[tensor.key];
  const bool fits = memory.compression == compression && memory.shape.rows == tensor.shape.rows &&
                    memory.shape.columns == tensor.shape.columns;
  if (fits) return memory;
  memory = {compression, tensor.shape, std::vector<float>(tensor.shape.elements()), {}, {}};
  if (compression.kind == Compression::Kind::int8) {
    memory.owed_of_sum.resize(piece_of(tensor, group_.rank(), group_.size()).size());
  } else {
    memory.q.resize(tensor.shape.columns * compression.rank);
    first_q(memory.q, seed_of(tensor.key));
  }
  return memory;
}

std::span<const float> Compressor::owed(const std::string& key) const {
  const auto found = memories_.find(key);
  if (found == memories_.end()) return {};
  return found->second.owed;
}

std::span<const float> Compressor::owed_of_sum(const std::string& key) const {
  const auto found = memories_.find(key);
  if (found == memories_.end()) return {};
  return found->second.owed_of_sum;
}

Result<void> Compressor::allreduce(std::span<const CompressedTensor> tensors,
                                   Compression compression, collectives::Reduction reduction,
                                   std::string_view name) {
  if (reduction != collectives::Reduction::sum && reduction != collectives::Reduction::average)
    return invalid("compression needs a sum or an average");
  switch (compression.kind) {
    case Compression::Kind::f16:
    case Compression::Kind::bf16:
      return cast(tensors, compression, reduction, name);
    case Compression::Kind::int8:
      return by_int8(tensors, compression, reduction, name);
    case Compression::Kind::low_rank:
      if (compression.rank == 0 || compression.rank > Compression::kRankMax)
        return invalid("invalid rank of low-rank compression: use 1 to " +
                       std::to_string(Compression::kRankMax) + " columns");
      return by_low_rank(tensors, compression, reduction, name);
    default:
      return invalid("the tensor to compress has no elements");
  }
}

Result<void> Compressor::cast(std::span<const CompressedTensor> tensors, Compression compression,
                              collectives::Reduction reduction, std::string_view name) {
  const collectives::Type type = cast_type(compression);
  size_t elements = 0;
  for (const auto& tensor : tensors) elements += tensor.shape.elements();
  std::byte* all = outgoing_.bytes(elements * bytes_of(type));
  std::byte* at = all;
  for (const auto& tensor : tensors) {
    const size_t count = tensor.shape.elements();
    if (tensor.input) {
      narrow_scaled(type, tensor.input, at, count, tensor.prescale);
    } else if (count > 0) {
      std::memset(at, 0, count * bytes_of(type));
    }
    at += count * bytes_of(type);
  }
  TRY(group_.run(collectives::calls::allreduce(collectives::BufferView{all, elements, type},
                                               {reduction, 1, std::string(name)})));
  at = all;
  for (const auto& tensor : tensors) {
    const size_t count = tensor.shape.elements();
    if (tensor.output) widen_scaled(type, at, tensor.output, count, tensor.postscale);
    at += count * bytes_of(type);
  }
  return ok();
}

Result<void> Compressor::by_int8(std::span<const CompressedTensor> tensors, Compression compression,
                                 collectives::Reduction reduction, std::string_view name) {
  const int ranks = group_.size();
  const int rank = group_.rank();
  std::vector<size_t> counts(static_cast<size_t>(ranks));
  size_t bytes = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    for (const auto& tensor : tensors)
      counts[size_t(peer)] += int8_bytes(piece_of(tensor, peer, ranks).size());
    bytes += counts[size_t(peer)];
  }
  const size_t own_bytes = counts[size_t(rank)];

  // The pieces of all ranks in the tensors of this rank.
  std::byte* outgoing = outgoing_.bytes(bytes);
  std::byte* at = outgoing;
  std::vector<Memory*> memories;
  for (const auto& tensor : tensors) {
    memories.push_back(&memory_of(tensor, compression));
    take_in(tensor, memories.back()->owed.data());
  }
  for (int peer = 0; peer < ranks; ++peer) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Range piece = piece_of(tensors[i], peer, ranks);
      to_int8(memories[i]->owed.data() + piece.begin, piece.size(), at);
      at += int8_bytes(piece.size());
    }
  }

  // The pieces that all ranks send to this one, added in the order of the ranks.
  std::byte* incoming = incoming_.bytes(std::max(bytes, own_bytes * size_t(ranks)));
  const std::vector<size_t> received(size_t(ranks), own_bytes);
  TRY(group_.run(named(
      collectives::calls::all_to_all({outgoing, bytes, collectives::Type::u8},
                                     {incoming, own_bytes * size_t(ranks), collectives::Type::u8},
                                     counts, received),
      name)));
  size_t offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t elements = piece_of(tensors[i], rank, ranks).size();
    std::vector<float> sum(elements);
    for (int peer = 0; peer < ranks; ++peer)
      add_int8(incoming + size_t(peer) * own_bytes + offset, elements, sum.data());
    float* owed = memories[i]->owed_of_sum.data();
    const float divisor = reduction == collectives::Reduction::average ? float(ranks) : 1;
    for (size_t k = 0; k < elements; ++k) owed[k] += sum[k] / divisor;
    to_int8(owed, elements, outgoing + offset);
    offset += int8_bytes(elements);
  }

  TRY(group_.run(
      named(collectives::calls::all_gather({outgoing, own_bytes, collectives::Type::u8},
                                           {incoming, bytes, collectives::Type::u8}, counts),
            name)));
  const std::byte* from = incoming;
  for (int peer = 0; peer < ranks; ++peer) {
    for (const auto& tensor : tensors) {
      const Range piece = piece_of(tensor, peer, ranks);
      if (tensor.output) {
        from_int8(from, piece.size(), tensor.output + piece.begin);
        multiply(tensor.output + piece.begin, piece.size(), tensor.postscale);
      }
      from += int8_bytes(piece.size());
    }
  }
  return ok();
}

Result<void> Compressor::by_low_rank(std::span<const CompressedTensor> tensors,
                                     Compression compression, collectives::Reduction reduction,
                                     std::string_view name) {
  const size_t rank = compression.rank;
  const auto thin = [&](const CompressedTensor& tensor) {
    return low_rank_saves(tensor.shape, rank);
  };
  // Vectors are not compressed; they are sent behind the P of the matrices.
  size_t first_elements = 0, second_elements = 0;
  for (const auto& tensor : tensors) {
    first_elements += thin(tensor) ? tensor.shape.rows * rank : tensor.shape.elements();
    second_elements += thin(tensor) ? tensor.shape.columns * rank : 0;
  }
  auto* first = reinterpret_cast<float*>(outgoing_.bytes(first_elements * sizeof(float)));
  float* at = first;
  for (const auto& tensor : tensors) {
    if (thin(tensor)) {
      Memory& memory = memory_of(tensor, compression);
      take_in(tensor, memory.owed.data());
      times(memory.owed.data(), tensor.shape, memory.q.data(), rank, at);
      at += tensor.shape.rows * rank;
    } else {
      const size_t elements = tensor.shape.elements();
      for (size_t i = 0; i < elements; ++i)
        at[i] = tensor.input ? tensor.input[i] * float(tensor.prescale) : 0;
      at += elements;
    }
  }
  const collectives::ReduceOptions averaging{collectives::Reduction::average, 1, std::string(name)};
  TRY(group_.run(collectives::calls::allreduce(
      collectives::numbers(std::span(first, first_elements)), averaging)));

  auto* second = reinterpret_cast<float*>(incoming_.bytes(second_elements * sizeof(float)));
  at = first;
  float* q = second;
  for (const auto& tensor : tensors) {
    if (!thin(tensor)) {
      at += tensor.shape.elements();
      continue;
    }
    Memory& memory = memories_.at(tensor.key);
    if (++memory.steps % kRowInterval == 0) {
      point_to_row(at, tensor.shape.rows, rank, memory.steps / kRowInterval % tensor.shape.rows);
    }
    orthonormalise(at, tensor.shape.rows, rank);
    transposed_times(memory.owed.data(), tensor.shape, at, rank, q);
    subtract_product(at, q, tensor.shape, rank, memory.owed.data());
    at += tensor.shape.rows * rank;
    q += tensor.shape.columns * rank;
  }
  if (second_elements > 0)
    TRY(group_.run(collectives::calls::allreduce(
        collectives::numbers(std::span(second, second_elements)), averaging)));

  const double summing = reduction == collectives::Reduction::sum ? double(group_.size()) : 1;
  at = first;
  q = second;
  for (const auto& tensor : tensors) {
    const size_t elements = tensor.shape.elements();
    if (!thin(tensor)) {
      if (tensor.output) std::copy_n(at, elements, tensor.output);
      at += elements;
    } else {
      Memory& memory = memories_.at(tensor.key);
      std::copy_n(q, memory.q.size(), memory.q.data());
      revive_q(memory.q, rank, seed_of(tensor.key));
      if (tensor.output) product(at, q, tensor.shape, rank, tensor.output);
      at += tensor.shape.rows * rank;
      q += tensor.shape.columns * rank;
    }
    if (tensor.output) multiply(tensor.output, elements, summing * tensor.postscale);
  }
  return ok();
}

}  // namespace trainyard::gradients
