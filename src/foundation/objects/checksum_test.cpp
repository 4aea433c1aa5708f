#include "objects/checksum.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace trainyard::objects {
namespace {

TEST(Checksum, IsTheSameForAnyPiecesOfTheBytes) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += char(i * 7);
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256", "md5"}) {
    const std::string whole = checksum_of(algorithm, bytes);
    for (size_t cut : {0u, 1u, 7u, 8u, 9u, 500u, 1000u}) {
      auto checksum = *make_checksum(algorithm);
      checksum->add(std::span(bytes).first(cut));
      checksum->add(std::span(bytes).subspan(cut));
      EXPECT_EQ(checksum->finish(), whole) << algorithm << " cut at " << cut;
    }
  }
}

TEST(Checksum, PartsCombineToTheChecksumOfTheWhole) {
  std::string bytes;
  for (int i = 0; i < 3000; ++i) bytes += char(i * i);
  for (const char* algorithm : {"crc32", "crc32c", "crc64nvme"})
    for (size_t cut : {0u, 1u, 8u, 1234u, 3000u}) {
      const auto view = std::string_view(bytes);
      const auto combined =
          combine_checksums(algorithm, checksum_of(algorithm, view.substr(0, cut)),
                            checksum_of(algorithm, view.substr(cut)), bytes.size() - cut);
      ASSERT_TRUE(combined);
      EXPECT_EQ(to_hex(*combined), to_hex(checksum_of(algorithm, bytes)))
          << algorithm << " cut at " << cut;
    }
  EXPECT_FALSE(combine_checksums("sha256", "", "", 0));
}

}  // namespace
}  // namespace trainyard::objects
