#include "collectives/transport/tcp/frame.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/text.hpp"

namespace trainyard::collectives {
namespace {

std::string as_hex(const HeaderBytes& bytes) {
  return to_hex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

HeaderBytes from_text(std::string_view hex) {
  HeaderBytes bytes;
  std::memcpy(bytes.data(), from_hex(hex)->data(), bytes.size());
  return bytes;
}

TEST(Frame, HasGoldenBytes) {
  EXPECT_EQ(as_hex(encode(FrameHeader{FrameKind::data, {7, 0x0102030405060708}, 4096})),
            "545952340200000007000000000000000807060504030201"
            "0010000000000000");
  EXPECT_EQ(to_hex(encode(Hello{1, 2, {0xaa, 0xbb}, 3, 4})),
            "5459523401000000000000000000000000000000000000002000000000000000"
            "01000000"
            "02000000"
            "03000000"
            "04000000"
            "aabb0000000000000000000000000000");
  EXPECT_EQ(to_hex(encode_proof(Digest{0xcc})),
            "5459523405000000000000000000000000000000000000002000000000000000"
            "cc00000000000000000000000000000000000000000000000000000000000000");
  EXPECT_EQ(to_hex(encode(Failed{3, "gone"})),
            "5459523403000000000000000000000000000000000000000800000000000000"
            "03000000"
            "676f6e65");
  EXPECT_EQ(as_hex(encode(FrameHeader{FrameKind::waiting, {3, 0}, 0})),
            "545952340600000003000000000000000000000000000000"
            "0000000000000000");
}

TEST(Frame, DecodesEncodedFrames) {
  const auto header =
      decode_header(encode(FrameHeader{FrameKind::data, {~uint64_t{0}, 1}, uint64_t{1} << 40}));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->kind, FrameKind::data);
  EXPECT_EQ(header->tag, (Tag{~uint64_t{0}, 1}));
  EXPECT_EQ(header->length, uint64_t{1} << 40);

  const auto hello = decode_hello(
      std::string_view(encode(Hello{4, 9, {1, 2, 3}, 1, 2})).substr(kFrameHeaderBytes));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->rank, 4u);
  EXPECT_EQ(hello->ranks, 9u);
  EXPECT_EQ(hello->socket, 1u);
  EXPECT_EQ(hello->sockets, 2u);
  EXPECT_EQ(hello->nonce, (Nonce{1, 2, 3}));

  const auto failed = decode_failed(
      std::string_view(encode(Failed{4, std::string(5000, 'x')})).substr(kFrameHeaderBytes));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->rank, 4u);
  EXPECT_LE(failed->why.size(), kControlPayloadBytesMax);
}

TEST(Proof, IsValidForOneConnectionDirectionAndSecret) {
  const Hello a{0, 2, {1}};
  const Hello b{1, 2, {2}};
  const Digest proof = prove("secret", a, b);
  EXPECT_TRUE(equal_in_constant_time(proof, prove("secret", a, b)));
  EXPECT_FALSE(equal_in_constant_time(proof, prove("secret", b, a)));
  EXPECT_FALSE(equal_in_constant_time(proof, prove("other", a, b)));
  EXPECT_FALSE(equal_in_constant_time(proof, prove("secret", a, Hello{1, 2, {3}})));
}

TEST(Frame, RejectsInvalidFrames) {
  const struct {
    const char* bytes;
    const char* why;
  } rows[] = {
      {"474554202f20485454502f312e310d0a000000000000000000000000000000ff", "begins with 542393671"},
      {"5459523400000000000000000000000000000000000000000000000000000000", "kind"},
      {"5459523407000000000000000000000000000000000000000000000000000000", "kind"},
      {"5459523402000001000000000000000000000000000000000000000000000000", "reserved"},
      {"5459523401000000010000000000000000000000000000000900000000000000", "operation"},
      {"5459523403000000000000000000000000000000000000000104000000000000", "bytes"},
      {"5459523404000000000000000000000000000000000000000100000000000000", "goodbye"},
      {"5459523406000000010000000000000001000000000000000000000000000000", "operation"},
      {"5459523406000000010000000000000000000000000000000100000000000000", "waiting"},
  };
  for (const auto& row : rows) {
    const auto header = decode_header(from_text(row.bytes));
    ASSERT_FALSE(header) << row.bytes;
    EXPECT_EQ(header.error().kind, Kind::corrupt);
    EXPECT_NE(header.error().message.find(row.why), std::string::npos) << header.error().message;
  }
  EXPECT_FALSE(decode_hello("short"));
  const std::string numbers("\2\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0", 16);  // rank 2 of 2
  EXPECT_FALSE(decode_hello(numbers + std::string(16, 'n')));
  const std::string sockets("\1\0\0\0\2\0\0\0\1\0\0\0\1\0\0\0", 16);  // socket 1 of 1
  EXPECT_FALSE(decode_hello(sockets + std::string(16, 'n')));
  EXPECT_FALSE(decode_proof("short"));
  EXPECT_FALSE(decode_failed("abc"));
}

}  // namespace
}  // namespace trainyard::collectives
