// Tests the framing of uploads, unsigned and signed by SigV4 and SigV4a: examples of the AWS
// documentation, round trips, and each kind of error.
#include "signing/chunks.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "base/text.hpp"
#include "signing/asymmetric.hpp"

namespace trainyard::signing {
namespace {

// The example of AWS's page "Signature Calculations for the Authorization Header: Transferring
// Payload in Multiple Chunks".
const Instant kDocumented = *parse_basic_iso8601("20130524T000000Z");
const Scope kScope{"us-east-1", "s3"};
constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
constexpr std::string_view kSeed =
    "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";

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

TEST(SignedChunks, ReadsTheDocumentedExample) {
  const std::string first(65536, 'a'), second(1024, 'a');
  const std::string body =
      "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" +
      first +
      "\r\n400;chunk-signature="
      "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
      second +
      "\r\n0;chunk-signature="
      "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n";
  EXPECT_EQ(signed_body({first, second}), body);
  const Read got = read(ChunkSeal::chunks, body);
  EXPECT_TRUE(got.result) << got.result.error().message;
  EXPECT_TRUE(got.finished);
  EXPECT_EQ(got.bytes, first + second);
}

// The example of AWS's page "Signature calculations for the authorization header: Including
// trailing headers".
TEST(SignedChunks, ReadsTheDocumentedExampleWithTrailers) {
  Claim claim = documented_claim();
  claim.signature = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
  const std::string bytes(66560, 'a');
  const std::string chunks =
      "10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n" +
      bytes.substr(1024) +
      "\r\n400;chunk-signature="
      "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n" +
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
      "x-amz-trailer-signature:"
      "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n";
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/Q==\r\n" + seal + "\r\n"), "sOO8/Q==");
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/R==\r\n" + seal + "\r\n"), "refused");
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"), "refused");
  EXPECT_EQ(read("x-amz-checksum-crc32c:sOO8/Q==\r\n" + seal + "x-amz-meta-a:b\r\n\r\n"),
            "refused");
}

TEST(SignedChunks, ReadsPiecesOfAnySize) {
  const std::string body = signed_body({"hello ", "wide ", "world"});
  for (size_t piece = 1; piece <= body.size(); ++piece) {
    const Read got = read(ChunkSeal::chunks, body, piece);
    ASSERT_TRUE(got.result && got.finished) << piece;
    EXPECT_EQ(got.bytes, "hello wide world");
  }
}

TEST(SignedChunks, RejectsChangedSwappedDroppedOrTruncatedBytes) {
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

TEST(SignedChunks, VerifiesTheSignatureOfTrailers) {
  std::string previous(kSeed);
  std::string body = sign_chunk("hello", documented_claim(), key(), previous);
  body += sign_chunk("", documented_claim(), key(), previous);
  const std::string text =
      "AWS4-HMAC-SHA256-TRAILER\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n" +
      previous + "\n" + sha256_hex("x-amz-checksum-crc32:NhCmhg==\n");
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
  EXPECT_EQ(
      sign_trailers({{"x-amz-checksum-crc32", "NhCmhg=="}}, documented_claim(), key(), previous),
      trailer + "x-amz-trailer-signature:" + signature + "\r\n\r\n");
  EXPECT_EQ(read(ChunkSeal::chunks, body + trailer + "\r\n").result.error().kind, Kind::denied);
  EXPECT_TRUE(read(ChunkSeal::chunks, body + "\r\n").finished);
  EXPECT_EQ(read(ChunkSeal::chunks_and_trailers, body + "\r\n").result.error().kind, Kind::denied)
      << "dropped as a whole";
  EXPECT_EQ(read(ChunkSeal::chunks,
                 body + "x-amz-checksum-crc32:OTHER===\r\nx-amz-trailer-signature:" + signature +
                     "\r\n\r\n")
                .result.error()
                .kind,
            Kind::denied);
}

// -- SigV4a

const std::string kPrivateKey = derive_private_key("AKIAIOSFODNN7EXAMPLE", kSecret);
const std::string kPublicKey = public_key_of(kPrivateKey);
const std::string kFull(kEcdsaChunkBytesMin, 'a'), kOther(kEcdsaChunkBytesMin, 'b');
constexpr std::string_view kChecksum = "x-amz-checksum-crc32c";

Claim ecdsa_claim() {
  Claim claim = documented_claim();
  claim.algorithm = Algorithm::ecdsa;
  claim.signature = to_hex(sign_ecdsa(kPrivateKey, "the request"));
  return claim;
}

// A body as a client sends it, in pieces that a test may change.
struct EcdsaBody {
  Claim claim = ecdsa_claim();
  std::vector<std::string> chunks;
  std::string trailers = "\r\n";

  explicit EcdsaBody(const std::vector<std::string>& data,
                     const std::map<std::string, std::string>& names = {},
                     const std::string& key = kPrivateKey) {
    std::string previous = claim.signature;
    for (const auto& one : data) chunks.push_back(sign_chunk(one, claim, key, previous));
    chunks.push_back(sign_chunk("", claim, key, previous));
    if (!names.empty()) trailers = sign_trailers(names, claim, key, previous);
  }
  std::string text() const {
    std::string out;
    for (const auto& one : chunks) out += one;
    return out + trailers;
  }
  Read read(ChunkSeal seal, const std::string& body, size_t piece = 1000) const {
    ChunkReader reader(seal, claim, kPublicKey);
    Read out{ok(), "", false, {}};
    for (size_t at = 0; at < body.size() && out.result; at += piece)
      out.result = reader.feed(std::string_view(body).substr(at, piece), out.bytes);
    out.finished = out.result && reader.finished();
    out.trailers = reader.trailers();
    return out;
  }
  Read read(ChunkSeal seal = ChunkSeal::chunks) const { return read(seal, text()); }
};

std::string& replace(std::string& text, std::string_view old, std::string_view by) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), by);
}

TEST(EcdsaChunks, ReadsPiecesOfAnySize) {
  const EcdsaBody body({"hello"}, {{"x-amz-checksum-crc32c", "yZRlqg=="}});
  const std::string text = body.text();
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    const Read got = body.read(ChunkSeal::chunks_and_trailers, text, piece);
    ASSERT_TRUE(got.finished) << piece;
    EXPECT_EQ(got.bytes, "hello");
    EXPECT_EQ(got.trailers.at("x-amz-checksum-crc32c"), "yZRlqg==");
  }
  EXPECT_EQ(EcdsaBody({kFull, kOther, "end"}).read().bytes, kFull + kOther + "end");
  EXPECT_TRUE(EcdsaBody({}).read().finished);
}

// Checks the strings to sign and the width of signatures against aws-c-auth
// (tests/test_chunked_signing.c, source/aws_signing.c).
TEST(EcdsaChunks, SignsTheSameStringsAsTheCommonRuntime) {
  const std::string when = "\n20130524T000000Z\n20130524/s3/aws4_request\n";
  for (int i = 0; i < 20; ++i) {
    const EcdsaBody body({"hello"}, {{"second", "2"}, {"first", "1"}});
    std::string previous = body.claim.signature;
    for (const std::string bytes : {"hello", ""}) {
      const std::string& line = body.chunks[bytes.empty() ? 1 : 0];
      const size_t begin = line.find('=') + 1, end = line.find('\r');
      EXPECT_EQ(end - begin, 144u);
      const std::string signature = line.substr(begin, std::min(end, line.find('*')) - begin);
      EXPECT_TRUE(verify_ecdsa(kPublicKey,
                               "AWS4-ECDSA-P256-SHA256-PAYLOAD" + when + previous + "\n" +
                                   sha256_hex("") + "\n" + sha256_hex(bytes),
                               from_hex(signature).value()));
      previous = signature;
    }
    const size_t at = body.trailers.rfind(':') + 1;
    EXPECT_EQ(body.trailers.substr(0, at), "first:1\r\nsecond:2\r\nx-amz-trailer-signature:");
    EXPECT_EQ(body.trailers.size() - at, 144u + 4);
    const std::string signature =
        body.trailers.substr(at, body.trailers.find_first_of("*\r", at) - at);
    EXPECT_TRUE(verify_ecdsa(kPublicKey,
                             "AWS4-ECDSA-P256-SHA256-TRAILER" + when + previous + "\n" +
                                 sha256_hex("first:1\nsecond:2\n"),
                             from_hex(signature).value()));
  }
}

TEST(EcdsaChunks, AcceptsTrailersInAnyOrder) {
  EcdsaBody body({"hello"}, {{"a", "1"}, {"b", "2"}});
  replace(body.trailers, "a:1\r\nb:2\r\n", "B: 2\r\na:1\r\n");
  EXPECT_TRUE(body.read(ChunkSeal::chunks_and_trailers).finished);
}

TEST(EcdsaChunks, RejectsChangedAndMissingBytes) {
  const EcdsaBody body({"hello"}, {{std::string(kChecksum), "yZRlqg=="}});
  const std::string text = body.text();
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] ^= 1;
    EXPECT_FALSE(body.read(ChunkSeal::chunks_and_trailers, changed).finished)
        << at << " " << changed;
    EXPECT_FALSE(body.read(ChunkSeal::chunks_and_trailers, text.substr(0, at)).finished) << at;
  }
  EXPECT_FALSE(body.read(ChunkSeal::chunks_and_trailers, text + "x").result);
}

TEST(EcdsaChunks, RejectsMovedDroppedAddedAndForeignChunks) {
  const auto refused = [](const std::function<void(EcdsaBody&)>& change) {
    EcdsaBody body({kFull, kOther, "end"});
    EXPECT_TRUE(body.read().finished);
    change(body);
    const Read got = body.read();
    return !got.result && got.result.error().kind == Kind::denied;
  };
  EXPECT_TRUE(refused([](EcdsaBody& body) { std::swap(body.chunks[0], body.chunks[1]); }));
  EXPECT_TRUE(refused([](EcdsaBody& body) { body.chunks.erase(body.chunks.begin()); }));
  EXPECT_TRUE(refused([](EcdsaBody& body) { body.chunks.erase(body.chunks.begin() + 1); }));
  EXPECT_TRUE(refused([](EcdsaBody& body) { body.chunks.erase(body.chunks.begin() + 2); }));
  EXPECT_TRUE(
      refused([](EcdsaBody& body) { body.chunks.insert(body.chunks.begin(), body.chunks[0]); }));
  EXPECT_TRUE(refused([](EcdsaBody& body) {
    body.chunks = EcdsaBody({kFull, kOther, "end"}).chunks;
  })) << "of another request";
  EXPECT_TRUE(refused([](EcdsaBody& body) {
    const Claim claim = body.claim;
    body = EcdsaBody({"end"}, {}, derive_private_key("AKIAIOSFODNN7EXAMPLE", "another secret"));
    body.claim = claim;
  })) << "of another key";
  EcdsaBody body({kFull});
  body.chunks.pop_back();
  EXPECT_FALSE(body.read().finished) << "without the last chunk";
}

TEST(EcdsaChunks, DeniesInvalidSignatures) {
  // Searches for a signature with padding; three in four have padding.
  EcdsaBody body({"hello"});
  for (int i = 0; i < 1'000 && body.chunks[0].find("**") == std::string::npos; ++i)
    body = EcdsaBody({"hello"});
  const std::string line = body.chunks[0];
  const size_t begin = line.find('=') + 1, end = line.find("\r\n");
  const std::string padded = line.substr(begin, end - begin);
  const std::string digits = padded.substr(0, padded.find('*'));
  const std::string stars = padded.substr(digits.size());
  ASSERT_GE(stars.size(), 2u);
  for (const std::string& signature :
       {std::string(), digits, stars + digits, padded + "*", padded.substr(0, 143),
        digits + std::string(stars.size(), ' '), digits + std::string(stars.size(), '0'),
        digits + stars.substr(1) + "0", "**" + digits + stars.substr(2), std::string(144, '*'),
        std::string(144, '0'), "3006020100020100" + std::string(128, '*'),
        to_hex(hmac_sha256(kPublicKey, "")), std::string(64, 'a')}) {
    body.chunks[0] = line.substr(0, begin) + signature + line.substr(end);
    const Read got = body.read();
    ASSERT_FALSE(got.result) << signature;
    EXPECT_EQ(got.result.error().kind, Kind::denied) << signature;
  }
  body.chunks[0] = "5\r\nhello\r\n";
  EXPECT_EQ(body.read().result.error().kind, Kind::denied);
}

// The verification key is public, so an HMAC with it proves nothing.
TEST(EcdsaChunks, DeniesAnHmacWithThePublicKey) {
  EcdsaBody body({});
  Claim claim = body.claim;
  claim.algorithm = Algorithm::hmac;
  std::string previous = claim.signature;
  body.chunks = {sign_chunk("", claim, kPublicKey, previous)};
  EXPECT_EQ(body.read().result.error().kind, Kind::denied);
}

TEST(EcdsaChunks, RejectsChangedAddedAndDroppedTrailers) {
  const auto refused = [](ChunkSeal seal, const std::function<void(std::string&)>& change) {
    EcdsaBody body({"hello"}, {{"x-amz-checksum-crc32c", "yZRlqg=="}});
    change(body.trailers);
    const Read got = body.read(seal);
    return !got.result && got.result.error().kind == Kind::denied;
  };
  for (const ChunkSeal seal : {ChunkSeal::chunks, ChunkSeal::chunks_and_trailers}) {
    EXPECT_FALSE(refused(seal, [](std::string&) {}));
    EXPECT_TRUE(refused(seal, [](std::string& text) { replace(text, "yZRl", "aaaa"); }));
    EXPECT_TRUE(refused(seal, [](std::string& text) { replace(text, "crc32c", "crc32"); }));
    EXPECT_TRUE(refused(seal, [](std::string& text) { text.insert(0, "x-amz-meta-a:b\r\n"); }));
    EXPECT_TRUE(refused(
        seal, [](std::string& text) { text.insert(text.size() - 2, "x-amz-meta-a:b\r\n"); }));
    EXPECT_TRUE(refused(seal, [](std::string& text) { text.erase(0, text.find("\r\n") + 2); }));
    EXPECT_TRUE(refused(
        seal, [](std::string& text) { text = text.substr(0, text.find("\r\n")) + "\r\n\r\n"; }));
    EXPECT_TRUE(refused(seal, [](std::string& text) {
      text = EcdsaBody({"hello"}, {{"x-amz-checksum-crc32c", "yZRlqg=="}}).trailers;
    })) << "of another request";
  }
  EXPECT_TRUE(refused(ChunkSeal::chunks_and_trailers, [](std::string& text) { text = "\r\n"; }));
  EcdsaBody twice({"hello"}, {{"a", "1"}});
  twice.trailers.insert(0, "a:1\r\n");
  EXPECT_EQ(twice.read().result.error().kind, Kind::invalid);
}

TEST(EcdsaChunks, AcceptsOnlyTheLastChunkBelowTheMinimum) {
  const std::string small(kEcdsaChunkBytesMin - 1, 'a');
  EXPECT_TRUE(EcdsaBody({kFull, small}).read().finished);
  EXPECT_EQ(EcdsaBody({kFull, small, kFull}).read().result.error().kind, Kind::exhausted);
  EXPECT_EQ(EcdsaBody({"a", "b"}).read().result.error().kind, Kind::exhausted);
}

TEST(UnsignedChunks, ReadsBytesAndTrailers) {
  const Read got =
      read(ChunkSeal::none,
           "5\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-Amz-Checksum-CRC32: abc=\r\n\r\n", 3);
  ASSERT_TRUE(got.result) << got.result.error().message;
  EXPECT_TRUE(got.finished);
  EXPECT_EQ(got.bytes, "hello0123456789");
  EXPECT_EQ(got.trailers, (std::map<std::string, std::string>{{"x-amz-checksum-crc32", "abc="}}));
}

TEST(UnsignedChunks, RejectsInvalidFraming) {
  for (const std::string body :
       {"x\r\n", "\r\n", "5\nhello", "5\r\nhelloX\r\n", "5\r\nhello0\r\n", "1000000000000000\r\n",
        "-1\r\n", "0\r\n:novalue\r\n\r\n", "0\r\na:b\r\nA:c\r\n\r\n", "0\r\nnocolon\r\n\r\n",
        "0\r\n\r\nmore", "5;chunk-signature\nhello"}) {
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
