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

// Returns a seed that is equal on all ranks and in all runs.
uint64_t seed_of(std::string_view key) { return fnv1a(key); }

// Returns the range of a tensor that a rank adds up, which consists of whole blocks.
Range piece_of(const CompressedTensor& tensor, int rank, int ranks) {
  const size_t elements = tensor.shape.elements();
  const Range blocks = collectives::plan::piece(int8_blocks(elements), rank, ranks);
  return {std::min(elements, blocks.begin * kInt8BlockElements),
          std::min(elements, blocks.end * kInt8BlockElements)};
}

// Adds input * prescale to the residual.
void add_scaled_input(const CompressedTensor& tensor, float* residual) {
  if (!tensor.input) return;
  const auto factor = float(tensor.prescale);
  for (size_t i = 0; i < tensor.shape.elements(); ++i) residual[i] += tensor.input[i] * factor;
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
    memory.sum_residual.resize(piece_of(tensor, group_.rank(), group_.size()).size());
  } else {
    memory.q.resize(tensor.shape.columns * compression.rank);
    first_q(memory.q, seed_of(tensor.key));
  }
  return memory;
}

std::span<const float> Compressor::residual(const std::string& key) const {
  const auto found = memories_.find(key);
  if (found == memories_.end()) return {};
  return found->second.residual;
}

std::span<const float> Compressor::sum_residual(const std::string& key) const {
  const auto found = memories_.find(key);
  if (found == memories_.end()) return {};
  return found->second.sum_residual;
}

Result<void> Compressor::allreduce(std::span<const CompressedTensor> tensors,
                                   Compression compression, collectives::Reduction reduction,
                                   std::string_view name) {
  if (reduction != collectives::Reduction::sum && reduction != collectives::Reduction::average)
    return invalid("compression supports only sums and averages");
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

void Compressor::write_int8(std::span<const CompressedTensor> tensors,
                            std::span<Memory* const> memories, std::byte* to) const {
  for (int peer = 0; peer < group_.size(); ++peer) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Range piece = piece_of(tensors[i], peer, group_.size());
      to_int8(memories[i]->residual.data() + piece.begin, piece.size(), to);
      to += int8_bytes(piece.size());
    }
  }
}

void Compressor::sum_int8(std::span<const CompressedTensor> tensors,
                          std::span<Memory* const> memories, collectives::Reduction reduction,
                          const std::byte* from, size_t stride, std::byte* to) const {
  const int ranks = group_.size();
  const float divisor = reduction == collectives::Reduction::average ? float(ranks) : 1;
  size_t offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t elements = piece_of(tensors[i], group_.rank(), ranks).size();
    std::vector<float> sum(elements);
    for (int peer = 0; peer < ranks; ++peer)
      add_int8(from + size_t(peer) * stride + offset, elements, sum.data());
    float* residual = memories[i]->sum_residual.data();
    for (size_t k = 0; k < elements; ++k) residual[k] += sum[k] / divisor;
    to_int8(residual, elements, to + offset);
    offset += int8_bytes(elements);
  }
}

void Compressor::read_int8(std::span<const CompressedTensor> tensors, const std::byte* from) const {
  for (int peer = 0; peer < group_.size(); ++peer) {
    for (const auto& tensor : tensors) {
      const Range piece = piece_of(tensor, peer, group_.size());
      if (tensor.output) {
        from_int8(from, piece.size(), tensor.output + piece.begin);
        multiply(tensor.output + piece.begin, piece.size(), tensor.postscale);
      }
      from += int8_bytes(piece.size());
    }
  }
}

Result<void> Compressor::by_int8(std::span<const CompressedTensor> tensors, Compression compression,
                                 collectives::Reduction reduction, std::string_view name) {
  const auto ranks = size_t(group_.size());
  std::vector<size_t> counts(ranks);
  size_t bytes = 0;
  for (size_t peer = 0; peer < ranks; ++peer) {
    for (const auto& tensor : tensors)
      counts[peer] += int8_bytes(piece_of(tensor, int(peer), int(ranks)).size());
    bytes += counts[peer];
  }
  const size_t own_bytes = counts[size_t(group_.rank())];
  std::vector<Memory*> memories;
  for (const auto& tensor : tensors) {
    memories.push_back(&memory_of(tensor, compression));
    add_scaled_input(tensor, memories.back()->residual.data());
  }

  // Each rank receives its piece of the tensors from all ranks, adds them up, and sends the sum to
  // all ranks.
  std::byte* outgoing = outgoing_.bytes(bytes);
  std::byte* incoming = incoming_.bytes(std::max(bytes, own_bytes * ranks));
  write_int8(tensors, memories, outgoing);
  const std::vector<size_t> received(ranks, own_bytes);
  TRY(group_.run(named(collectives::calls::all_to_all(
                           {outgoing, bytes, collectives::Type::u8},
                           {incoming, own_bytes * ranks, collectives::Type::u8}, counts, received),
                       name)));
  sum_int8(tensors, memories, reduction, incoming, own_bytes, outgoing);
  TRY(group_.run(
      named(collectives::calls::all_gather({outgoing, own_bytes, collectives::Type::u8},
                                           {incoming, bytes, collectives::Type::u8}, counts),
            name)));
  read_int8(tensors, incoming);
  return ok();
}

void Compressor::project(std::span<const CompressedTensor> tensors, Compression compression,
                         float* to) {
  const size_t rank = compression.rank;
  for (const auto& tensor : tensors) {
    if (low_rank_saves(tensor.shape, rank)) {
      Memory& memory = memory_of(tensor, compression);
      add_scaled_input(tensor, memory.residual.data());
      times(memory.residual.data(), tensor.shape, memory.q.data(), rank, to);
      to += tensor.shape.rows * rank;
    } else {
      const size_t elements = tensor.shape.elements();
      for (size_t i = 0; i < elements; ++i)
        to[i] = tensor.input ? tensor.input[i] * float(tensor.prescale) : 0;
      to += elements;
    }
  }
}

void Compressor::project_back(std::span<const CompressedTensor> tensors, size_t rank, float* p,
                              float* q) {
  for (const auto& tensor : tensors) {
    if (!low_rank_saves(tensor.shape, rank)) {
      p += tensor.shape.elements();
      continue;
    }
    Memory& memory = memories_.at(tensor.key);
    if (++memory.steps % kRowInterval == 0) {
      point_to_row(p, tensor.shape.rows, rank, memory.steps / kRowInterval % tensor.shape.rows);
    }
    orthonormalise(p, tensor.shape.rows, rank);
    transposed_times(memory.residual.data(), tensor.shape, p, rank, q);
    subtract_product(p, q, tensor.shape, rank, memory.residual.data());
    p += tensor.shape.rows * rank;
    q += tensor.shape.columns * rank;
  }
}

void Compressor::expand(std::span<const CompressedTensor> tensors, size_t rank, const float* p,
                        const float* q, double factor) {
  for (const auto& tensor : tensors) {
    const size_t elements = tensor.shape.elements();
    if (!low_rank_saves(tensor.shape, rank)) {
      if (tensor.output) std::copy_n(p, elements, tensor.output);
      p += elements;
    } else {
      Memory& memory = memories_.at(tensor.key);
      std::copy_n(q, memory.q.size(), memory.q.data());
      revive_q(memory.q, rank, seed_of(tensor.key));
      if (tensor.output) product(p, q, tensor.shape, rank, tensor.output);
      p += tensor.shape.rows * rank;
      q += tensor.shape.columns * rank;
    }
    if (tensor.output) multiply(tensor.output, elements, factor * tensor.postscale);
  }
}

Result<void> Compressor::by_low_rank(std::span<const CompressedTensor> tensors,
                                     Compression compression, collectives::Reduction reduction,
                                     std::string_view name) {
  const size_t rank = compression.rank;
  // Vectors are not compressed; they are sent after the P of the matrices.
  size_t p_elements = 0, q_elements = 0;
  for (const auto& tensor : tensors) {
    const bool is_compressed = low_rank_saves(tensor.shape, rank);
    p_elements += is_compressed ? tensor.shape.rows * rank : tensor.shape.elements();
    q_elements += is_compressed ? tensor.shape.columns * rank : 0;
  }
  const collectives::ReduceOptions averaging{collectives::Reduction::average, 1, std::string(name)};
  auto* p = reinterpret_cast<float*>(outgoing_.bytes(p_elements * sizeof(float)));
  project(tensors, compression, p);
  TRY(group_.run(collectives::calls::allreduce(collectives::buffer_view(std::span(p, p_elements)),
                                               averaging)));
  auto* q = reinterpret_cast<float*>(incoming_.bytes(q_elements * sizeof(float)));
  project_back(tensors, rank, p, q);
  if (q_elements > 0)
    TRY(group_.run(collectives::calls::allreduce(collectives::buffer_view(std::span(q, q_elements)),
                                                 averaging)));
  const bool sums = reduction == collectives::Reduction::sum;
  expand(tensors, rank, p, q, sums ? double(group_.size()) : 1);
  return ok();
}

}  // namespace trainyard::gradients
