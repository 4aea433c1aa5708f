#include "checkpoint/shards.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "checkpoint/metadata.hpp"

namespace trainyard::checkpoint {
namespace {

constexpr const char* kShardPrefix = "shard.";

std::optional<uint64_t> elements_of_shape(const std::vector<uint64_t>& shape) {
  uint64_t elements = 1;
  for (const uint64_t extent : shape) {
    const auto product = checked_mul(elements, extent);
    if (!product) return std::nullopt;
    elements = *product;
  }
  return elements;
}

struct Header {
  int64_t rank = 0, ranks = 1, steps = 0;
};
constexpr auto kHeader = complete(json_record<Header>("metadata", [](auto& side, auto& header) {
  side("rank", header.rank, DecimalText{});
  side("ranks", header.ranks, DecimalText{});
  side("steps", header.steps, DecimalText{});
}));

// A form of json_record.hpp: the extents of a tensor.
struct ShapeForm {
  using Value = std::vector<uint64_t>;
  static Json write(const Value& shape) { return shape; }
  static Result<void> read_into(const Json& json, Value& shape) {
    if (!json.is_array() || json.size() > kDimensionsMax)
      return corrupt("it must be a list of at most " + std::to_string(kDimensionsMax) +
                     " numbers, not " + shorten(dump(json), 64));
    for (const Json& each : json) {
      if (!each.is_number_unsigned())
        return corrupt(shorten(dump(each), 64) + " is negative or not an integer");
      shape.push_back(each.get<uint64_t>());
    }
    return ok();
  }
};

struct ShardPosition {
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
};
constexpr auto kPosition =
    complete(json_record<ShardPosition>("position", [](auto& side, auto& position) {
      side("shape", position.shape, ShapeForm{});
      side("begin", position.begin);
    }));

Result<Header> decode_header(const Contents& contents) {
  const Header header = TRY(read_metadata(contents.metadata, kShardsFormat, kHeader));
  if (header.ranks < 1 || header.ranks > kShardRanksMax)
    return corrupt("invalid ranks " + std::to_string(header.ranks) + ": it must be 1 to " +
                   std::to_string(kShardRanksMax));
  if (header.rank < 0 || header.rank >= header.ranks)
    return corrupt("invalid rank " + std::to_string(header.rank) + ": it must be 0 to " +
                   std::to_string(header.ranks - 1));
  if (header.steps < 0)
    return corrupt("invalid steps " + std::to_string(header.steps) + ": it must not be negative");
  return header;
}

Result<ShardPosition> decode_position(const Contents& contents, const std::string& name) {
  const auto found = contents.metadata.find(kShardPrefix + name);
  if (found == contents.metadata.end())
    return corrupt("the metadata with the shard's position is missing");
  const auto json = parse_json(found->second);
  if (!json) return corrupt(json.error().message);
  auto position = kPosition.read(*json);
  if (!position) return corrupt(position.error().message);
  return position;
}

Result<Shard> decode_shard(const Contents& contents, const std::string& name,
                           const TensorView& stored) {
  auto position = TRY(decode_position(contents, name));
  const auto whole = elements_of_shape(position.shape);
  const auto end = checked_add(position.begin, stored.elements());
  if (!whole || !end || stored.shape.size() != 1 || *end > *whole)
    return corrupt("the shard is outside its tensor");
  return Shard{stored.type, std::move(position.shape), position.begin, stored.bytes};
}

std::string to_text(const std::vector<uint64_t>& shape) { return dump(Json(shape)); }

}  // namespace

Contents encode_shards(const ShardFile& file) {
  Contents contents;
  contents.metadata = write_metadata(kShardsFormat, kHeader, {file.rank, file.ranks, file.steps});
  for (const auto& [name, shard] : file.shards) {
    contents.tensors[name] = {shard.type, {shard.count()}, shard.bytes};
    contents.metadata[kShardPrefix + name] = dump(kPosition.write({shard.shape, shard.begin}));
  }
  return contents;
}

Result<ShardFile> decode_shards(const Contents& contents) {
  const Header header = TRY(decode_header(contents));
  ShardFile file{int(header.rank), int(header.ranks), header.steps, {}};
  for (const auto& [name, stored] : contents.tensors)
    file.shards.emplace(name,
                        TRY(decode_shard(contents, name, stored).in("shard of tensor " + name)));
  return file;
}

Result<void> copy_shards(const ShardFile& file, std::map<std::string, WantedShard>& wanted) {
  for (auto& [name, want] : wanted) {
    const auto found = file.shards.find(name);
    if (found == file.shards.end()) continue;
    const Shard& shard = found->second;
    if (shard.type != want.type || shard.shape != want.shape)
      return corrupt("tensor " + name + " is " + std::string(to_string(shard.type)) + " of shape " +
                     to_text(shard.shape) + ", but the model needs " +
                     std::string(to_string(want.type)) + " of shape " + to_text(want.shape));
    const uint64_t begin = std::max(shard.begin, want.begin);
    const uint64_t end = std::min(shard.begin + shard.count(), want.begin + want.count);
    if (begin >= end) continue;
    const size_t width = bytes_of(want.type);
    std::memcpy(want.to + (begin - want.begin) * width,
                shard.bytes.data() + (begin - shard.begin) * width, (end - begin) * width);
    want.copied.emplace_back(begin, end);
  }
  return ok();
}

Result<void> check_complete(const std::map<std::string, WantedShard>& wanted) {
  for (const auto& [name, want] : wanted) {
    auto copied = want.copied;
    std::sort(copied.begin(), copied.end());
    uint64_t at = want.begin;
    for (const auto& [begin, end] : copied) {
      if (begin != at)
        return corrupt("tensor " + name + ": " +
                       (begin < at ? "two files have element " : "no file has element ") +
                       std::to_string(std::min(begin, at)));
      at = end;
    }
    if (at != want.begin + want.count)
      return corrupt("tensor " + name + ": no file has element " + std::to_string(at));
  }
  return ok();
}

}  // namespace trainyard::checkpoint
