#include "objects/directory/record.hpp"

#include <gtest/gtest.h>

#include "objects/checksum.hpp"
#include "objects/directory/part_list.hpp"

namespace trainyard::objects {
namespace {

const std::string kPartMd5 = "0123456789abcdef0123456789abcdef";

// Returns the end of the file of an object with two parts, with these numbers in its record.
Result<std::optional<Record>> decode(const std::string& parts, const std::string& bytes,
                                     uint32_t listed = 2) {
  const std::string text =
      R"({"key":"k","etag":"e","modified_ms":0,"content_type":"t","upload_id":")" + kPartMd5 +
      R"(","parts":)" + parts + R"(,"bytes":)" + bytes + "}";
  const uint64_t body = part_list_bytes(listed);
  std::string end = text;
  for (int i = 0; i < 8; ++i) end += char(body >> (8 * i));
  for (int i = 0; i < 4; ++i) end += char(text.size() >> (8 * i));
  const std::string sum = checksum_of("crc32c", text);
  end.append(sum.rbegin(), sum.rend()).append("TYOBJ001");
  return decode_record(end, body + end.size());
}

TEST(ObjectRecord, RejectsNumbersOutsideTheirLimits) {
  for (const char* bytes : {"0", "2147483648", "4294967296", "1125899906842624"}) {
    const auto record = decode("2", bytes);
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(std::to_string((*record)->info.bytes), bytes);
  }
  for (const char* bytes :
       {"-1", "1125899906842625", "9223372036854775807", "18446744073709551615", "1e3"}) {
    const auto record = decode("2", bytes);
    ASSERT_FALSE(record) << bytes;
    EXPECT_EQ(record.error().kind, Kind::corrupt);
  }
  for (const char* parts :
       {"0", "-1", "10001", "2147483648", "4294967296", "4294967298", "9223372036854775807"})
    EXPECT_FALSE(decode(parts, "1")) << parts;
}

TEST(ObjectRecord, RejectsPartsWhoseTotalLengthOverflows) {
  const auto parts = [](std::vector<uint64_t> lengths) {
    std::vector<PartEntry> entries;
    for (const uint64_t length : lengths)
      entries.push_back({uint32_t(entries.size() + 1), length, kPartMd5});
    return encode_part_list(entries);
  };
  EXPECT_TRUE(decode_part_list(parts({uint64_t(1) << 31, uint64_t(1) << 32}), uint64_t(3) << 31));
  EXPECT_FALSE(decode_part_list(parts({uint64_t(1) << 63, uint64_t(1) << 63}), 0));
  EXPECT_FALSE(decode_part_list(parts({UINT64_MAX, 1}), 0));
  EXPECT_FALSE(decode_part_list(parts({uint64_t(INT64_MAX)}), uint64_t(INT64_MAX)));
  EXPECT_TRUE(decode_part_list(parts(std::vector<uint64_t>(kPartsMax, kPartEntryBytesMax)),
                               kPartsMax * kPartEntryBytesMax));
}

}  // namespace
}  // namespace trainyard::objects
