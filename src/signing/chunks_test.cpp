// The framing of signed and unsigned uploads: the example of the AWS documentation, round trips, and each way
// to be wrong.
#include "signing/chunks.hpp"

#include <gtest/gtest.h>

namespace trainyard::signing {
namespace {

// "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks", its
// example.
const Instant kDocumented = *parse_basic_iso8601("20130524T000000Z");
const Scope kScope{"us-east-1", "s3"};
constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
constexpr std::string_view kSeed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";

Claim documented_claim() {
  Claim claim;
  claim.access_key_id = "AKIAIOSFODNN7EXAMPLE";
  claim.date = "20130524";
  claim.scope = kScope;
  claim.signature = kSeed;
  claim.signed_at = kDocumented;
  return claim;
}

std::string key() { return signing_key(kSecret, "20130524", kScope); }

std::string signed_body(const std::vector<std::string>& chunks) {
  std::string previous(kSeed), out;
  for (const auto& chunk : chunks) out += sign_chunk(chunk, documented_claim(), key(), previous);
  return out + sign_chunk("", documented_claim(), key(), previous) + "\r\n";
}

struct Read {
  Result<void> result;
  std::string bytes;
  bool finished;
  std::map<std::string, std::string> trailers;
};

Read read(ChunkSeal seal, std::string_view body, size_t piece = 1000) {
  ChunkReader reader(seal, documented_claim(), key());
  Read out{ok(), "", false, {}};
  for (size_t at = 0; at < body.size() && out.result; at += piece)
    out.result = reader.feed(body.substr(at, piece), out.bytes);
  out.finished = reader.finished();
  out.trailers = reader.trailers();
  return out;
}

TEST(SignedChunks, TheDocumentedExample) {
  const std::string first(65536, 'a'), second(1024, 'a');
  const std::string body =
      "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" + first +
      "\r\n400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
      second +
      "\r\n0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n";
  EXPECT_EQ(signed_body({first, second}), body);
  const Read got = read(ChunkSeal::chunks, body);
  EXPECT_TRUE(got.result) << got.result.error().message;
  EXPECT_TRUE(got.finished);
  EXPECT_EQ(got.bytes, first + second);
}

// "Signature calculations for the authorization header: Including trailing headers", its example.
TEST(SignedChunks, TheDocumentedExampleWithTrailers) {
  Claim claim = documented_claim();
  claim.signature = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
  const std::string bytes(66560, 'a');
  const std::string chunks =
      "10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n" +
      bytes.substr(1024) +
      "\r\n400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n" +
      bytes.substr(65536) +
      "\r\n0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n";
  const auto read = [&](const std::string& trailers) {
    ChunkReader reader(ChunkSeal::chunks, claim, key());
    std::string out;
    const auto fed = reader.feed(chunks + trailers, out);
    EXPECT_EQ(out, bytes);
    return fed && reader.finished() ? reader.trailers().at("x-amz-checksum-crc32c") : "refused";
  };
  const std::string seal =
      "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n";
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/Q==\r\n" + seal + "\r\n"), "sOO8/Q==");
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/R==\r\n" + seal + "\r\n"), "refused");
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"), "refused");
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/Q==\r\n" + seal + "x-amz-meta-a:b\r\n\r\n"), "refused");
}

TEST(SignedChunks, AnyPieceSizeReadsTheSame) {
  const std::string body = signed_body({"hello ", "wide ", "world"});
  for (size_t piece = 1; piece <= body.size(); ++piece) {
    const Read got = read(ChunkSeal::chunks, body, piece);
    ASSERT_TRUE(got.result && got.finished) << piece;
    EXPECT_EQ(got.bytes, "hello wide world");
  }
}

TEST(SignedChunks, NothingMayBeChangedSwappedDroppedOrCutOff) {
  const std::string body = signed_body({"hello ", "world!"});
  for (size_t at = 0; at < body.size(); ++at) {
    std::string changed = body;
    changed[at] ^= 1;
    const Read got = read(ChunkSeal::chunks, changed);
    EXPECT_FALSE(got.result && got.finished) << at << " " << changed;
    EXPECT_FALSE(read(ChunkSeal::chunks, body.substr(0, at)).finished) << at;
  }
  const std::string swapped = signed_body({"world!", "hello "});
  EXPECT_NE(swapped, body);
  EXPECT_FALSE(read(ChunkSeal::chunks, body + "x").result);
  EXPECT_FALSE(read(ChunkSeal::chunks, "6\r\nhello \r\n0\r\n\r\n").result);
  EXPECT_EQ(read(ChunkSeal::chunks, "0\r\n\r\n").result.error().kind, Kind::denied);
}

TEST(SignedChunks, TrailersAreSignedToo) {
  std::string previous(kSeed);
  std::string body = sign_chunk("hello", documented_claim(), key(), previous);
  body += sign_chunk("", documented_claim(), key(), previous);
  const std::string text =
      "AWS4-HMAC-SHA256-TRAILER\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n" + previous + "\n" +
      sha256_hex("x-amz-checksum-crc32:NhCmhg==\n");
  std::string signature;
  for (const unsigned char c : hmac_sha256(key(), text)) {
    signature += "0123456789abcdef"[c >> 4];
    signature += "0123456789abcdef"[c & 15];
  }
  const std::string trailer = "x-amz-checksum-crc32:NhCmhg==\r\n";
  const Read got =
      read(ChunkSeal::chunks, body + trailer + "x-amz-trailer-signature:" + signature + "\r\n\r\n");
  ASSERT_TRUE(got.result) << got.result.error().message;
  EXPECT_TRUE(got.finished);
  EXPECT_EQ(got.trailers.at("x-amz-checksum-crc32"), "NhCmhg==");
  EXPECT_EQ(read(ChunkSeal::chunks, body + trailer + "\r\n").result.error().kind, Kind::denied);
  EXPECT_EQ(read(ChunkSeal::chunks,
                 body + "x-amz-checksum-crc32:OTHER===\r\nx-amz-trailer-signature:" + signature + "\r\n\r\n")
                .result.error()
                .kind,
            Kind::denied);
}

TEST(UnsignedChunks, WithTrailers) {
  const Read got =
      read(ChunkSeal::none, "5\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-Amz-Checksum-CRC32: abc=\r\n\r\n", 3);
  ASSERT_TRUE(got.result) << got.result.error().message;
  EXPECT_TRUE(got.finished);
  EXPECT_EQ(got.bytes, "hello0123456789");
  EXPECT_EQ(got.trailers, (std::map<std::string, std::string>{{"x-amz-checksum-crc32", "abc="}}));
}

TEST(UnsignedChunks, BadFramingIsInvalid) {
  for (const std::string body :
       {"x\r\n", "\r\n", "5\nhello", "5\r\nhelloX\r\n", "5\r\nhello0\r\n", "1000000000000000\r\n", "-1\r\n",
        "0\r\n:novalue\r\n\r\n", "0\r\nnocolon\r\n\r\n", "0\r\n\r\nmore", "5;chunk-signature\nhello"}) {
    const Read got = read(ChunkSeal::none, body);
    ASSERT_FALSE(got.result) << body;
    EXPECT_EQ(got.result.error().kind, Kind::invalid) << body;
  }
  EXPECT_FALSE(read(ChunkSeal::none, std::string(300, '0')).result);
  EXPECT_FALSE(read(ChunkSeal::none, "0\r\na:" + std::string(9000, 'b')).result);
  std::string many = "0\r\n";
  for (int i = 0; i < 5000; ++i) many += "a:b\r\n";
  EXPECT_FALSE(read(ChunkSeal::none, many).result);
}

}  // namespace
}  // namespace trainyard::signing
