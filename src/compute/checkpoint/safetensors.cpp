#include "checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "base/enum_table.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr EnumTable<Type> kTypes{"dtype",
                                 {{Type::f64, "F64"},
                                  {Type::f32, "F32"},
                                  {Type::f16, "F16"},
                                  {Type::bf16, "BF16"},
                                  {Type::i64, "I64"},
                                  {Type::i32, "I32"},
                                  {Type::i16, "I16"},
                                  {Type::i8, "I8"},
                                  {Type::u8, "U8"},
                                  {Type::boolean, "BOOL"}}};
constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr const char* kMetadata = "__metadata__";

std::optional<uint64_t> bytes_of_shape(Type type, const std::vector<uint64_t>& shape) {
  uint64_t bytes = bytes_of(type);
  for (const uint64_t extent : shape) {
    const auto product = checked_mul(bytes, extent);
    if (!product) return std::nullopt;
    bytes = *product;
  }
  return bytes;
}

Result<std::vector<uint64_t>> decode_unsigned(const Json& list, std::string_view member,
                                              size_t count_max) {
  if (!list.is_array() || list.size() > count_max)
    return corrupt("invalid " + std::string(member) + ": it must be a list of at most " +
                   std::to_string(count_max) + " numbers");
  std::vector<uint64_t> numbers;
  for (const Json& each : list) {
    if (!each.is_number_unsigned())
      return corrupt("invalid " + std::string(member) + ": " + shorten(dump(each), 64) +
                     " is negative or not an integer");
    numbers.push_back(each.get<uint64_t>());
  }
  return numbers;
}

// The position of a tensor's bytes in the data.
struct Extent {
  uint64_t begin = 0, end = 0;
};

Result<std::pair<TensorView, Extent>> decode_tensor(const Json& entry, std::string_view data) {
  if (!entry.is_object()) return corrupt("the entry must be a JSON object");
  TensorView tensor;
  const std::string type = TRY(string_at(entry, "dtype"));
  const auto known = kTypes.parse(type);
  if (!known) return corrupt(known.error().message);
  tensor.type = *known;
  tensor.shape = TRY(decode_unsigned(entry.value("shape", Json()), "shape", kDimensionsMax));
  const auto offsets = TRY(decode_unsigned(entry.value("data_offsets", Json()), "data_offsets", 2));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size())
    return corrupt("invalid data_offsets " + dump(entry["data_offsets"]) +
                   ": expected [begin, end] within the file's " + std::to_string(data.size()) +
                   " bytes of data");
  const auto needed = bytes_of_shape(tensor.type, tensor.shape);
  if (!needed || *needed != offsets[1] - offsets[0])
    return corrupt("data_offsets cover " + std::to_string(offsets[1] - offsets[0]) +
                   " bytes, but dtype and shape need " +
                   (needed ? std::to_string(*needed) : "2^64 or more"));
  tensor.bytes = data.substr(offsets[0], offsets[1] - offsets[0]);
  return std::pair{std::move(tensor), Extent{offsets[0], offsets[1]}};
}

Result<std::map<std::string, std::string>> decode_metadata(const Json& entry) {
  if (!entry.is_object()) return corrupt("__metadata__ must be a JSON object of strings");
  std::map<std::string, std::string> metadata;
  for (const auto& [name, text] : entry.items()) {
    if (!text.is_string())
      return corrupt("__metadata__." + shorten(name, 64) + " must be a string");
    metadata[name] = text.get<std::string>();
  }
  return metadata;
}

// Checks that each byte of the data belongs to exactly one tensor.
Result<void> check_extents(std::vector<Extent> extents, uint64_t data_bytes) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const Extent& each : extents) {
    if (each.begin != at)
      return corrupt(each.begin < at ? "two tensors overlap at byte " + std::to_string(each.begin)
                                     : "no tensor has byte " + std::to_string(at) + " of the data");
    at = each.end;
  }
  if (at != data_bytes)
    return corrupt(std::to_string(data_bytes - at) + " bytes after the last tensor");
  return ok();
}

}  // namespace

// collectives::bytes_of() is for other types (8-bit floats): neither module includes the other, and
// base, which both include, has no tensors.
size_t bytes_of(Type type) {
  switch (type) {
    case Type::f64:
    case Type::i64:
      return 8;
    case Type::f32:
    case Type::i32:
      return 4;
    case Type::f16:
    case Type::bf16:
    case Type::i16:
      return 2;
    default:
      return 1;
  }
}

std::string_view to_string(Type type) { return kTypes.text(type); }

uint64_t TensorView::elements() const {
  uint64_t elements = 1;
  for (const uint64_t extent : shape) elements *= extent;
  return elements;
}

std::string encode(const Contents& contents) {
  std::vector<const std::pair<const std::string, TensorView>*> ordered;
  for (const auto& each : contents.tensors) ordered.push_back(&each);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return bytes_of(a->second.type) > bytes_of(b->second.type);
  });
  Json header = Json::object();
  if (!contents.metadata.empty()) header[kMetadata] = contents.metadata;
  uint64_t at = 0;
  for (const auto* each : ordered) {
    const auto& [name, tensor] = *each;
    CHECK(name.size() <= kNameBytesMax && tensor.shape.size() <= kDimensionsMax &&
              bytes_of_shape(tensor.type, tensor.shape) == tensor.bytes.size(),
          "a tensor is within the format's limits and has the bytes of its shape");
    header[name] = {{"dtype", kTypes.text(tensor.type)},
                    {"shape", tensor.shape},
                    {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = dump(header);
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  CHECK(text.size() <= kHeaderBytesMax, "the header has at most kHeaderBytesMax bytes");
  std::string bytes;
  bytes.reserve(kLengthBytes + text.size() + at);
  append_little_endian(bytes, text.size(), kLengthBytes);
  bytes += text;
  for (const auto* each : ordered) bytes += each->second.bytes;
  return bytes;
}

Result<Contents> decode(std::string_view bytes) {
  if (bytes.size() < kLengthBytes)
    return corrupt("truncated header: the file has " + std::to_string(bytes.size()) + " bytes");
  const uint64_t header_bytes = little_endian(bytes.substr(0, kLengthBytes));
  bytes.remove_prefix(kLengthBytes);
  if (header_bytes > kHeaderBytesMax || header_bytes > bytes.size())
    return corrupt("invalid header length " + std::to_string(header_bytes) + ": " +
                   std::to_string(bytes.size()) + " bytes follow, and at most " +
                   std::to_string(kHeaderBytesMax) + " are allowed");
  auto parsed = parse_json(bytes.substr(0, header_bytes));
  if (!parsed) return corrupt("header: " + parsed.error().message);
  if (!parsed->is_object()) return corrupt("the header must be a JSON object");
  const std::string_view data = bytes.substr(header_bytes);
  Contents contents;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : parsed->items()) {
    if (name == kMetadata) {
      contents.metadata = TRY(decode_metadata(entry));
      continue;
    }
    if (name.size() > kNameBytesMax)
      return corrupt("the name of a tensor is longer than " + std::to_string(kNameBytesMax) +
                     " bytes");
    auto decoded = decode_tensor(entry, data);
    if (!decoded) return corrupt("tensor " + name + ": " + decoded.error().message);
    extents.push_back(decoded->second);
    contents.tensors.emplace(name, std::move(decoded->first));
  }
  TRY(check_extents(std::move(extents), data.size()));
  return contents;
}

Result<void> save(const Contents& contents, const std::string& path) {
  constexpr unsigned kReadableMode = 0644;
  return os::write_file_durably(path, encode(contents), kReadableMode);
}

Result<LoadedFile> load(const std::string& path, size_t bytes_max) {
  LoadedFile file;
  file.bytes = TRY(os::read_file(path, bytes_max));
  // A string of this capacity is on the heap, so a move does not change the address of its bytes.
  file.bytes.reserve(sizeof(std::string) + 1);
  file.contents = TRY(decode(file.bytes).in(path));
  return file;
}

}  // namespace trainyard::checkpoint
