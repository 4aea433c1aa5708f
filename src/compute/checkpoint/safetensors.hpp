// Reads and writes safetensors files: named tensors of any shape, and metadata as text.
//
//   header_bytes:u64   little-endian
//   header             JSON {"NAME": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]},
//                      .., "__metadata__": {"NAME": "TEXT", ..}}, padded with blanks
//   data               the tensors; offsets count from here
//
// docs/formats/safetensors.md has the grammar and the limits. A file is rejected if its header is
// too long, if tensors overlap or leave a gap, or if a shape does not fit its offsets. So all
// readers see the same tensors in a file.
//
// Threads: plain values; pure functions. Errors: corrupt, naming the tensor and the wrong member;
// exhausted, when a file is larger than the caller allows.
// Units: sizes in bytes, shapes in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::checkpoint {

enum class Type : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

size_t bytes_of(Type type);
std::string_view to_string(Type type);  // "F32", as in the header

// Limits of a header, which bound what a reader allocates for it.
inline constexpr uint64_t kHeaderBytesMax = 16 << 20;  // 100,000 tensors of 160 bytes
inline constexpr size_t kDimensionsMax = 8;
inline constexpr size_t kNameBytesMax = 512;

// A TensorView refers to the elements of one tensor, in memory that the caller owns.
struct TensorView {
  Type type = Type::f32;
  std::vector<uint64_t> shape;  // empty: one element
  std::string_view bytes;

  // Returns the product of the shape, which does not overflow for a decoded tensor.
  uint64_t elements() const;
};

struct Contents {
  std::map<std::string, TensorView> tensors;
  std::map<std::string, std::string> metadata;
};

// Encodes a file. Tensors with larger element types come first, so that every tensor is aligned for
// its type. Requires: each tensor has as many bytes as its shape needs; names and shapes are within
// the limits.
std::string encode(const Contents& contents);

// Decodes a file. The tensors refer to `bytes`.
Result<Contents> decode(std::string_view bytes);

// A LoadedFile is a file in memory. `contents` refers to `bytes`, also after a move.
struct LoadedFile {
  LoadedFile() = default;
  LoadedFile(LoadedFile&&) = default;
  LoadedFile& operator=(LoadedFile&&) = default;
  std::string bytes;
  Contents contents;
};

// Writes a file durably and atomically: a reader sees either the old file or the new one.
Result<void> save(const Contents& contents, const std::string& path);
Result<LoadedFile> load(const std::string& path, size_t bytes_max);

}  // namespace trainyard::checkpoint
