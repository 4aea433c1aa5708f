#include "remote_write/snappy.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/text.hpp"

namespace trainyard::remote_write {
namespace {

constexpr size_t kBytesMax = 1 << 20;

TEST(Snappy, RoundTrips) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    const size_t letters = 1 + random() % 255;
    for (size_t i = random() % (round % 50 == 0 ? 200'000 : 2'000); i > 0; --i) {
      if (random() % 40 == 0 && !bytes.empty())
        bytes += bytes.substr(random() % bytes.size(), random() % 300);
      bytes += char(random() % letters);
    }
    const auto back = snappy_decompress(snappy_compress(bytes), kBytesMax);
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_EQ(*back, bytes);
  }
}

TEST(Snappy, CompressesRepeatedBytes) {
  EXPECT_EQ(to_hex(snappy_compress("")), "00");
  EXPECT_EQ(to_hex(snappy_compress("abc")), "0308616263");
  EXPECT_EQ(to_hex(snappy_compress("abcdabcd")), "080c616263640e0400");
  const std::string labels(60'000, 'x');
  EXPECT_LT(snappy_compress(labels).size(), 3'000U);
  EXPECT_EQ(*snappy_decompress(snappy_compress(labels), kBytesMax), labels);
}

// The reference implementation made these blocks. Its short copies and long literals are forms that
// snappy_compress() does not write.
TEST(Snappy, DecompressesElementsOfTheReferenceImplementation) {
  EXPECT_EQ(*snappy_decompress(*from_hex("0a0c616263640904"), kBytesMax), "abcdabcdab");
  EXPECT_EQ(*snappy_decompress(*from_hex("08"
                                         "0c61626364"
                                         "0f04000000"),
                               kBytesMax),
            "abcdabcd");
  const std::string literal(300, 'y');
  EXPECT_EQ(*snappy_decompress(*from_hex("ac02"
                                         "f42b01") +
                                   literal,
                               kBytesMax),
            literal);
}

TEST(Snappy, RejectsMalformedBlocks) {
  for (const char* hex :
       {"", "ff", "ffffffffffffffffff7f", "04", "0308616263ff", "03086162", "020861626300",
        "080c616263640e0500", "080c616263640e0000", "05f4", "080c616263640e", "40016162"})
    EXPECT_EQ(snappy_decompress(*from_hex(hex), kBytesMax).error().kind, Kind::invalid) << hex;
  EXPECT_EQ(snappy_decompress(*from_hex("808080018000"), 1000).error().kind, Kind::exhausted);
}

}  // namespace
}  // namespace trainyard::remote_write
