// Writes and reads metadata of one record, and damages it.
#include "checkpoint/metadata.hpp"

#include <gtest/gtest.h>

#include "base/complete_record.hpp"

namespace trainyard::checkpoint {
namespace {

struct Header {
  int64_t ranks = 0;
  std::string name;
};
constexpr auto kHeader = complete(json_record<Header>("metadata", [](auto& side, auto& header) {
  side("ranks", header.ranks, DecimalText{});
  side("name", header.name);
}));

TEST(Metadata, AreTexts) {
  const Metadata written = write_metadata("some", kHeader, {.ranks = -12, .name = "a"});
  EXPECT_EQ(written, (Metadata{{"format", "some"}, {"name", "a"}, {"ranks", "-12"}}));
  const auto read = read_metadata(written, "some", kHeader);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ranks, -12);
  EXPECT_EQ(read->name, "a");
}

TEST(Metadata, NameTheFaultyMember) {
  const Metadata good = {{"format", "some"}, {"name", "a"}, {"ranks", "1"}, {"another", ""}};
  ASSERT_TRUE(read_metadata(good, "some", kHeader));
  const std::pair<std::string, std::string> damages[] = {
      {"format", "the format of the file is x, not some"},
      {"ranks", "metadata.ranks: 'x' is not a decimal number of 64 bits"}};
  for (const auto& [name, message] : damages) {
    Metadata damaged = good;
    damaged[name] = "x";
    const auto read = read_metadata(damaged, "some", kHeader);
    ASSERT_FALSE(read) << name;
    EXPECT_EQ(read.error().kind, Kind::corrupt);
    EXPECT_EQ(read.error().message, message);
  }
  for (const char* text : {"", " 1", "1 ", "1.0", "9223372036854775808"}) {
    Metadata damaged = good;
    damaged["ranks"] = text;
    EXPECT_FALSE(read_metadata(damaged, "some", kHeader)) << text;
  }
  for (const char* name : {"format", "ranks", "name"}) {
    Metadata damaged = good;
    damaged.erase(name);
    EXPECT_FALSE(read_metadata(damaged, "some", kHeader)) << name;
  }
}

}  // namespace
}  // namespace trainyard::checkpoint
