#include "base/bytes/record_io.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

std::string word(uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}
std::string part(uint32_t flag, const std::string& payload) {
  return word(kRecordMagic) + word(flag << 29 | static_cast<uint32_t>(payload.size())) + payload +
         std::string(record_padding(payload.size()), '\0');
}
std::string written(const std::string& payload) {
  const auto head = record_head(payload.size());
  return std::string(head.data(), head.size()) + payload +
         std::string(record_padding(payload.size()), '\0');
}

// Returns "a|b|" of the records, or the error; pushed in pieces of `step` bytes.
std::string read(const std::string& bytes, size_t step = 1 << 20,
                 size_t record_bytes_max = 1 << 20) {
  RecordDecoder decoder(record_bytes_max);
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += step) {
    decoder.push(std::string_view(bytes).substr(at, step));
    for (;;) {
      const auto record = decoder.next();
      if (!record) return record.error().message;
      if (!*record) break;
      text += **record + "|";
    }
  }
  const auto finished = decoder.finish();
  return finished ? text : finished.error().message;
}

TEST(RecordIO, WritesWholePaddedRecords) {
  EXPECT_EQ(written("abcde"), word(0xced7230a) + word(5) + "abcde" + std::string(3, '\0'));
  EXPECT_EQ(written(""), word(0xced7230a) + word(0));
  EXPECT_EQ(written(word(kRecordMagic)).size(), 12u)
      << "never split, even if the payload contains the magic";
}

TEST(RecordIO, ReadsWholeAndSplitRecordsInPiecesOfAnySize) {
  const std::string with_magic = "1234" + word(kRecordMagic) + "5678";
  const std::string bytes = written("a") + written("") + written(with_magic) + part(1, "1234") +
                            part(3, "5678") + part(1, "") + part(2, "") + part(3, "");
  const std::string expected =
      "a||" + with_magic + "|" + with_magic + "|" + word(kRecordMagic) + word(kRecordMagic) + "|";
  for (const size_t step : {1u, 3u, 4u, 7u, 1000u}) EXPECT_EQ(read(bytes, step), expected) << step;
  std::string many, names;
  for (int i = 0; i < 50'000; ++i) {
    many += written(std::to_string(i));
    names += std::to_string(i) + "|";
  }
  EXPECT_EQ(read(many, 1000), names);
}

TEST(RecordIO, ReportsInvalidRecords) {
  EXPECT_NE(read("12345678").find("magic"), std::string::npos);
  EXPECT_NE(read(part(3, "x")).find("no beginning"), std::string::npos);
  EXPECT_NE(read(part(1, "x") + written("y")).find("begins within another"), std::string::npos);
  EXPECT_NE(read(part(5, "x")).find("flag is 5"), std::string::npos);
  EXPECT_NE(read(written("abc").substr(0, 10)).find("end within"), std::string::npos);
  EXPECT_NE(read(part(1, "x")).find("end within"), std::string::npos);
  EXPECT_NE(read(written(std::string(100, 'x')), 1000, 99).find("longer than 99"),
            std::string::npos);
}

TEST(RecordIO, ChecksDeclaredLengths) {
  const auto with_length = [](uint32_t length) { return word(kRecordMagic) + word(length); };
  EXPECT_EQ(read(with_length(0)), "|");
  for (const uint32_t length : {100u, 1u << 28, uint32_t(kRecordBytesMax)})
    EXPECT_NE(read(with_length(length), 1000, 99).find("longer than 99"), std::string::npos)
        << length;
  // All 32 bits are set: the flag is unknown, and the length the largest.
  EXPECT_NE(read(with_length(UINT32_MAX), 1000, 99).find("longer than 99"), std::string::npos);
  // Parts of a split record count together, with the magic between them.
  const std::string parts = part(1, std::string(48, 'x')) + part(3, std::string(48, 'y'));
  EXPECT_EQ(read(parts, 1000, 100).size(), 101u);
  EXPECT_NE(read(parts, 1000, 99).find("longer than 99"), std::string::npos);
}

}  // namespace
}  // namespace trainyard
