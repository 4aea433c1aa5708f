#include "base/bytes/crc.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace trainyard {
namespace {

// Equals Crc::run(), a bit at a time.
template <class Word>
Word run_bits(Word sum, std::string_view bytes, Word polynomial) {
  for (const char byte : bytes) {
    sum ^= Word(uint8_t(byte));
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1) ? (sum >> 1) ^ polynomial : sum >> 1;
  }
  return sum;
}

template <class Kind>
void expect_equal_to_bits(typename Kind::Word polynomial) {
  using Word = typename Kind::Word;
  SeededRandom random(1);
  std::string text;
  for (int i = 0; i < 400; ++i) text += char(random.below(256));
  for (size_t length = 0; length <= 200; ++length) {
    const auto bytes = std::string_view(text).substr(random.below(200), length);
    for (const Word sum : {Word(0), Word(~Word(0)), Word(random.below(UINT64_MAX))}) {
      const Word expected = run_bits(sum, bytes, polynomial);
      ASSERT_EQ(Kind::run(sum, bytes), expected) << length << " bytes";
      ASSERT_EQ(Kind::run_tables(sum, bytes), expected) << length << " bytes";
    }
  }
}

TEST(Crc, EqualsTheDefinitionForEachLength) {
  expect_equal_to_bits<Crc32>(0xedb88320);
  expect_equal_to_bits<Crc32c>(0x82f63b78);
  expect_equal_to_bits<Crc64Nvme>(0x9a6c9329ac4bc9b5);
}

TEST(Crc, HasTheCheckValues) {
  EXPECT_EQ(Crc32::of("123456789"), 0xcbf43926u);
  EXPECT_EQ(Crc32c::of("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc64Nvme::of("123456789"), 0xae8b14860a799888u);
}

}  // namespace
}  // namespace trainyard
