#include "checkpoint/shards.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/check.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

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

Result<int64_t> number_in(const Contents& contents, const char* name, int64_t limit) {
  const auto found = contents.metadata.find(name);
  if (found == contents.metadata.end()) return corrupt(std::string(name) + " is missing");
  const std::string& text = found->second;
  int64_t number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number < 0 ||
      number > limit)
    return corrupt("invalid " + std::string(name) + ": " + shorten(text, 64));
  return number;
}

struct ShardPlace {
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
};

Result<ShardPlace> decode_place(const Contents& contents, const std::string& name) {
  const auto found = contents.metadata.find(kShardPrefix + name);
  if (found == contents.metadata.end())
    return corrupt("the metadata with the shard's position is missing");
  const auto json = parse_json(found->second);
  if (!json) return corrupt(json.error().message);
  if (!json->is_object()) return corrupt("the shard's position must be a JSON object");
  const Json shape = json->value("shape", Json()), begin = json->value("begin", Json());
  if (!shape.is_array() || shape.size() > kDimensionsMax || !begin.is_number_unsigned())
    return corrupt("the shard's position must have a shape of at most " +
                   std::to_string(kDimensionsMax) + " dimensions and an unsigned begin");
  ShardPlace place{{}, begin.get<uint64_t>()};
  for (const Json& each : shape) {
    if (!each.is_number_unsigned()) return corrupt("invalid shape: " + shorten(dump(shape), 64));
    place.shape.push_back(each.get<uint64_t>());
  }
  return place;
}

Result<Shard> decode_shard(const Contents& contents, const std::string& name,
                           const TensorView& stored) {
  auto place = TRY(decode_place(contents, name));
  const auto whole = elements_of_shape(place.shape);
  const auto end = checked_add(place.begin, stored.elements());
  if (!whole || !end || stored.shape.size() != 1 || *end > *whole)
    return corrupt("the shard is outside its tensor");
  return Shard{stored.type, std::move(place.shape), place.begin, stored.bytes};
}

std::string to_text(const std::vector<uint64_t>& shape) { return dump(Json(shape)); }

}  // namespace

Contents encode_shards(const ShardFile& file) {
  Contents contents;
  contents.metadata = {{"format", std::string(kShardsFormat)},
                       {"rank", std::to_string(file.rank)},
                       {"ranks", std::to_string(file.ranks)},
                       {"steps", std::to_string(file.steps)}};
  for (const auto& [name, shard] : file.shards) {
    contents.tensors[name] = {shard.type, {shard.count()}, shard.bytes};
    contents.metadata[kShardPrefix + name] =
        dump(Json{{"shape", shard.shape}, {"begin", shard.begin}});
  }
  return contents;
}

Result<ShardFile> decode_shards(const Contents& contents) {
  const auto format = contents.metadata.find("format");
  if (format == contents.metadata.end() || format->second != kShardsFormat)
    return corrupt("not a file of shards: its format is not " + std::string(kShardsFormat));
  ShardFile file;
  file.ranks = int(TRY(number_in(contents, "ranks", kShardRanksMax)));
  file.rank = int(TRY(number_in(contents, "rank", file.ranks - 1)));
  file.steps = TRY(number_in(contents, "steps", std::numeric_limits<int64_t>::max()));
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
