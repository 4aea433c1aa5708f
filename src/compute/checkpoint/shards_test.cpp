// Writes shards of tensors, reads them on another number of ranks, and damages their metadata.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "checkpoint/shards.hpp"

namespace trainyard::checkpoint {
namespace {

std::string_view bytes_of_numbers(const std::vector<float>& numbers, size_t begin, size_t count) {
  return {reinterpret_cast<const char*>(numbers.data() + begin), count * sizeof(float)};
}

std::vector<float> ascending(size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  return numbers;
}

// Returns files in which `ranks` ranks have equal parts of a tensor of 12 elements.
std::vector<ShardFile> files_of(int ranks, const std::vector<float>& numbers) {
  std::vector<ShardFile> files;
  const size_t count = numbers.size() / size_t(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    ShardFile file{rank, ranks, 17, {}};
    const size_t begin = count * size_t(rank);
    file.shards["w"] = {Type::f32, {3, 4}, begin, bytes_of_numbers(numbers, begin, count)};
    files.push_back(std::move(file));
  }
  return files;
}

TEST(Shards, AreReadByAnotherNumberOfRanks) {
  const std::vector<float> numbers = ascending(12);
  for (const int ranks : {1, 2, 3, 4, 6})
    for (uint64_t begin = 0; begin < 12; ++begin)
      for (uint64_t count = 1; begin + count <= 12; ++count) {
        std::vector<float> read(count, -1);
        std::map<std::string, WantedShard> wanted;
        wanted["w"] = {Type::f32, {3, 4}, begin, count, reinterpret_cast<char*>(read.data())};
        for (const ShardFile& file : files_of(ranks, numbers)) {
          const std::string bytes = encode(encode_shards(file));
          const auto contents = decode(bytes);
          ASSERT_TRUE(contents);
          const auto decoded = decode_shards(*contents);
          ASSERT_TRUE(decoded) << decoded.error().message;
          EXPECT_EQ(decoded->rank, file.rank);
          EXPECT_EQ(decoded->ranks, ranks);
          EXPECT_EQ(decoded->steps, 17);
          ASSERT_TRUE(copy_shards(*decoded, wanted));
        }
        ASSERT_TRUE(check_complete(wanted));
        for (uint64_t i = 0; i < count; ++i) EXPECT_EQ(read[i], float(begin + i));
      }
}

TEST(Shards, NameMissingAndRepeatedElements) {
  const std::vector<float> numbers = ascending(12);
  const auto files = files_of(3, numbers);
  std::vector<float> read(12);
  const auto message = [&](std::initializer_list<int> which) {
    std::map<std::string, WantedShard> wanted;
    wanted["w"] = {Type::f32, {3, 4}, 0, 12, reinterpret_cast<char*>(read.data())};
    for (const int each : which) EXPECT_TRUE(copy_shards(files[size_t(each)], wanted));
    const auto complete = check_complete(wanted);
    return complete ? std::string() : complete.error().message;
  };
  EXPECT_EQ(message({0, 1, 2}), "");
  EXPECT_EQ(message({0, 2}), "tensor w: no file has element 4");
  EXPECT_EQ(message({0, 1}), "tensor w: no file has element 8");
  EXPECT_EQ(message({}), "tensor w: no file has element 0");
  // The number of elements is correct, but one is missing and one is repeated.
  EXPECT_EQ(message({0, 1, 1}), "tensor w: two files have element 4");
}

TEST(Shards, AreRejectedForAnotherModel) {
  const std::vector<float> numbers = ascending(12);
  const auto files = files_of(1, numbers);
  std::vector<float> read(12);
  std::map<std::string, WantedShard> wanted;
  wanted["w"] = {Type::f32, {4, 3}, 0, 12, reinterpret_cast<char*>(read.data())};
  const auto copied = copy_shards(files[0], wanted);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().message,
            "tensor w is F32 of shape [3,4], but the model needs F32 of shape [4,3]");
}

TEST(Shards, AreCorruptWithDamagedMetadata) {
  const std::vector<float> numbers = ascending(12);
  const Contents good = encode_shards(files_of(2, numbers)[1]);
  ASSERT_TRUE(decode_shards(good));
  const std::pair<const char*, const char*> damages[] = {
      {"format", "another"},
      {"ranks", "1"},
      {"ranks", "0"},
      {"ranks", "99999999999"},
      {"rank", "2"},
      {"rank", "-1"},
      {"rank", "1 "},
      {"steps", "-1"},
      {"steps", ""},
      {"shard.w", "{"},
      {"shard.w", "[]"},
      {"shard.w", R"({"shape":[3,4]})"},
      {"shard.w", R"({"shape":[3,4],"begin":-6})"},
      {"shard.w", R"({"shape":[3,4],"begin":7})"},
      {"shard.w", R"({"shape":[3,-4],"begin":0})"},
      {"shard.w", R"({"shape":[4294967296,4294967296],"begin":0})"},
      {"shard.w", R"({"shape":[3,4],"begin":18446744073709551615})"}};
  for (const auto& [name, text] : damages) {
    Contents damaged = good;
    damaged.metadata[name] = text;
    const auto decoded = decode_shards(damaged);
    ASSERT_FALSE(decoded) << name << " " << text;
    EXPECT_EQ(decoded.error().kind, Kind::corrupt);
  }
  for (const char* name : {"format", "rank", "ranks", "steps", "shard.w"}) {
    Contents damaged = good;
    damaged.metadata.erase(name);
    EXPECT_FALSE(decode_shards(damaged)) << name;
  }
}

}  // namespace
}  // namespace trainyard::checkpoint
