// Decodes any bytes as a file of shards. Decoded shards are within their tensors, and encode to a
// file that decodes to them.
// decoder: src/compute/checkpoint/shards.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "checkpoint/shards.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto contents = checkpoint::decode(bytes);
  if (!contents) return 0;
  const auto file = checkpoint::decode_shards(*contents);
  if (!file) return 0;
  CHECK(file->rank >= 0 && file->rank < file->ranks && file->steps >= 0, "numbers have limits");
  std::map<std::string, checkpoint::WantedShard> wanted;
  std::map<std::string, std::string> copies;
  for (const auto& [name, shard] : file->shards) {
    std::string& copy = copies[name];
    copy.resize(shard.bytes.size());
    wanted[name] = {shard.type, shard.shape, shard.begin, shard.count(), copy.data()};
  }
  CHECK(checkpoint::copy_shards(*file, wanted) && checkpoint::check_complete(wanted),
        "a shard can be read back");
  for (auto& [name, want] : wanted) {
    std::map<std::string, checkpoint::WantedShard> other{{name, want}};
    other.begin()->second.shape.push_back(1);
    CHECK(!checkpoint::copy_shards(*file, other), "a shard of another shape is rejected");
    want.copied.emplace_back(want.begin, want.begin + 1);
    CHECK(want.count == 0 || !checkpoint::check_complete({{name, want}}),
          "each element has one source");
  }
  const auto again = checkpoint::decode_shards(checkpoint::encode_shards(*file));
  CHECK(again && again->shards.size() == file->shards.size(), "shards encode and decode again");
  for (const auto& [name, shard] : again->shards)
    CHECK(shard.bytes == copies.at(name) && shard.shape == file->shards.at(name).shape &&
              shard.begin == file->shards.at(name).begin,
          "a shard is the same after encoding");
  return 0;
}
