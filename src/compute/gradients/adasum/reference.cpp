// Computes the adaptive sum over the values of all ranks at once, element by element, in the order
// that adasum.hpp defines.
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "collectives/reduce/float_formats.hpp"
#include "gradients/adasum/adasum.hpp"

namespace trainyard::gradients::reference {
namespace {

using Vector = std::vector<double>;  // holds every value of the narrower types exactly

double number_at(collectives::Type type, const std::vector<std::byte>& bytes, size_t index) {
  const std::byte* at = bytes.data() + index * bytes_of(type);
  double wide;
  float single;
  uint16_t half;
  switch (type) {
    case collectives::Type::f64:
      std::memcpy(&wide, at, sizeof wide);
      return wide;
    case collectives::Type::f32:
      std::memcpy(&single, at, sizeof single);
      return double(single);
    default:
      std::memcpy(&half, at, sizeof half);
      return double(type == collectives::Type::f16 ? collectives::formats::from_f16(half)
                                                   : collectives::formats::from_bf16(half));
  }
}

double rounded(collectives::Type type, double value) {
  if (type == collectives::Type::f64) return value;
  if (type == collectives::Type::f32) return double(float(value));
  return double(type == collectives::Type::f16
                    ? collectives::formats::from_f16(collectives::formats::to_f16(float(value)))
                    : collectives::formats::from_bf16(collectives::formats::to_bf16(float(value))));
}

struct Piece {
  size_t begin;
  size_t end;
};

// Returns how a block of `ranks` ranks divides the elements, by rank. The lowest bit of a rank
// selects a half first.
std::vector<Piece> pieces(size_t ranks, size_t elements) {
  std::vector<Piece> all;
  for (size_t rank = 0; rank < ranks; ++rank) {
    Piece piece{0, elements};
    for (size_t bit = 1; bit < ranks; bit *= 2) {
      const size_t middle = piece.begin + (piece.end - piece.begin + 1) / 2;
      (rank & bit ? piece.begin : piece.end) = middle;
    }
    all.push_back(piece);
  }
  return all;
}

double dot(const Vector& a, const Vector& b, size_t tensor_begin, size_t tensor_end,
           const std::vector<Piece>& cut) {
  double sum = 0;
  for (const Piece& piece : cut) {
    const size_t begin = std::max(tensor_begin, piece.begin);
    const size_t end = std::min(tensor_end, piece.end);
    double lanes[kAdasumLanes]{};
    for (size_t i = begin; i < end; ++i) lanes[(i - begin) % kAdasumLanes] += a[i] * b[i];
    double part = 0;
    for (const double lane : lanes) part += lane;
    sum += part;
  }
  return sum;
}

Vector combined(collectives::Type type, const Vector& a, const Vector& b,
                std::span<const size_t> tensors, const std::vector<Piece>& cut) {
  Vector out(a.size());
  size_t begin = 0;
  for (const size_t size : tensors) {
    const size_t end = begin + size;
    const double ab = dot(a, b, begin, end, cut), aa = dot(a, a, begin, end, cut),
                 bb = dot(b, b, begin, end, cut);
    for (size_t i = begin; i < end; ++i) {
      out[i] = rounded(
          type, (aa > 0 ? 1 - ab / aa / 2 : 1) * a[i] + (bb > 0 ? 1 - ab / bb / 2 : 1) * b[i]);
    }
    begin = end;
  }
  return out;
}

}  // namespace

std::vector<std::byte> adasum(collectives::Type type,
                              const std::vector<std::vector<std::byte>>& inputs,
                              std::span<const size_t> tensors) {
  CHECK(!inputs.empty(), "at least one rank");
  const size_t elements = inputs.front().size() / bytes_of(type);
  std::vector<Vector> blocks;
  for (const auto& input : inputs) {
    Vector& block = blocks.emplace_back();
    for (size_t i = 0; i < elements; ++i) block.push_back(number_at(type, input, i));
  }
  const size_t pairing = std::bit_floor(inputs.size());
  for (size_t rank = pairing; rank < inputs.size(); ++rank)
    blocks[rank - pairing] =
        combined(type, blocks[rank - pairing], blocks[rank], tensors, pieces(1, elements));
  blocks.resize(pairing);
  for (size_t ranks = 2; blocks.size() > 1; ranks *= 2) {
    std::vector<Vector> next;
    for (size_t i = 0; i < blocks.size(); i += 2)
      next.push_back(combined(type, blocks[i], blocks[i + 1], tensors, pieces(ranks, elements)));
    blocks = std::move(next);
  }
  std::vector<std::byte> bytes(elements * bytes_of(type));
  for (size_t i = 0; i < elements; ++i) {
    std::byte* at = bytes.data() + i * bytes_of(type);
    const double value = blocks[0][i];
    const auto single = float(value);
    const uint16_t half = type == collectives::Type::f16 ? collectives::formats::to_f16(single)
                                                         : collectives::formats::to_bf16(single);
    if (type == collectives::Type::f64) std::memcpy(at, &value, sizeof value);
    if (type == collectives::Type::f32) std::memcpy(at, &single, sizeof single);
    if (bytes_of(type) == 2) std::memcpy(at, &half, sizeof half);
  }
  return bytes;
}

}  // namespace trainyard::gradients::reference
