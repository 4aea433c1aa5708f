// Tests bodies of uploads: plain, hashed, chunked with and without signatures, each verified before
// its end is reported.
#include "dispatch/body.hpp"

#include <gtest/gtest.h>

#include "dispatch/testing/in_memory.hpp"
#include "signing/asymmetric.hpp"
#include "signing/chunks.hpp"

namespace trainyard::api {
namespace {

constexpr std::string_view kHello = "hello world";

Signer signer_of(std::string payload) {
  Signer out;
  out.claim.date = "20261120";
  out.claim.scope = {"eu-west-1", "s3"};
  out.claim.signature = std::string(64, 'a');
  out.claim.signed_at = *parse_basic_iso8601("20261120T094500Z");
  out.claim.payload_sha256 = std::move(payload);
  out.signing_key = signing::signing_key("secret", out.claim.date, out.claim.scope);
  return out;
}

struct Upload {
  std::string bytes;
  Result<void> result;
  std::string code;  // of the failure for the client
  std::map<std::string, std::string> trailers;
};

Upload upload(const Signer& signer, std::string body, const std::string& decoded_length = "",
              const std::string& trailer = "x-amz-checksum-crc32") {
  net::Request request;
  request.method = "PUT";
  request.target = "/b/k";
  if (!decoded_length.empty()) request.headers.add("x-amz-decoded-content-length", decoded_length);
  if (!trailer.empty()) request.headers.add("x-amz-trailer", trailer);
  request.content_length = body.size();
  request.body = std::move(body);
  in_memory::Reply reply;
  in_memory::MemoryStream stream(request, reply, 5);
  auto opened = Body::open(stream, signer);
  if (!opened) return {"", std::move(opened).error(), "", {}};
  Upload out{"", ok(), "", {}};
  char buffer[4];
  while (true) {
    const auto count = (*opened)->read(buffer);
    if (!count) out.result = count.error();
    if (!count || *count == 0) break;
    out.bytes.append(buffer, *count);
  }
  if ((*opened)->failure())
    out.code = (*opened)->failure()->code;
  else
    out.trailers = (*opened)->trailers();
  return out;
}

TEST(Body, VerifiesTheHash) {
  Upload got = upload(signer_of("UNSIGNED-PAYLOAD"), std::string(kHello));
  EXPECT_TRUE(got.result);
  EXPECT_EQ(got.bytes, kHello);
  got = upload(signer_of(signing::sha256_hex(kHello)), std::string(kHello));
  EXPECT_TRUE(got.result);
  EXPECT_EQ(got.bytes, kHello);
  got = upload(signer_of(signing::sha256_hex(kHello)), "hello World");
  EXPECT_FALSE(got.result);
  EXPECT_EQ(got.code, "XAmzContentSHA256Mismatch");
  EXPECT_FALSE(upload(signer_of("STREAMING-UNKNOWN"), "").result);
  EXPECT_FALSE(upload(signer_of("short"), "").result);
}

TEST(Body, ReadsChunksWithATrailer) {
  const std::string body =
      "5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n";
  const Signer signer = signer_of("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
  Upload got = upload(signer, body, "11");
  EXPECT_TRUE(got.result);
  EXPECT_EQ(got.bytes, kHello);
  EXPECT_EQ(got.trailers.at("x-amz-checksum-crc32"), "DUoRhQ==");
  EXPECT_EQ(upload(signer, body, "10").code, "IncompleteBody");
  EXPECT_EQ(upload(signer, body, "12").code, "IncompleteBody");
  EXPECT_EQ(upload(signer, body.substr(0, body.size() - 2), "11").code, "IncompleteBody");
  EXPECT_FALSE(upload(signer, body, "x").result);
}

TEST(Body, RejectsMalformedUnsignedChunks) {
  const Signer signer = signer_of("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
  for (const std::string body :
       {"", "5\r\nhello\r\n", "5\r\nhello\r\n0\r\n", "5\r\nhell\r\n0\r\n\r\n",
        "6\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n", "ffffffffffffffff\r\nhello",
        "5;chunk-signature=0\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n: b\r\n\r\n",
        "5\r\nhello\r\n0\r\n\r\nmore", "0\r\n\r\n"})
    EXPECT_EQ(upload(signer, body, "5").code, "IncompleteBody") << body;
  EXPECT_EQ(upload(signer, "5\r\nhello\r\n0\r\nx-amz-trailer-signature:0\r\n\r\n", "5").code, "")
      << "an unsigned body has no use for a signature";
}

TEST(Body, AcceptsOnlyTrailersInTheSignedHead) {
  const std::string body =
      "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\nx-amz-meta-a:b\r\n\r\n";
  const Signer signer = signer_of("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
  EXPECT_EQ(upload(signer, body, "5", "").code, "MalformedTrailerError");
  EXPECT_EQ(upload(signer, body, "5", "x-amz-checksum-crc32").code, "MalformedTrailerError");
  EXPECT_EQ(upload(signer, body, "5", "x-amz-checksum-sha256, x-amz-meta-a").code,
            "MalformedTrailerError");
  EXPECT_TRUE(upload(signer, body, "5", "X-Amz-Checksum-Crc32, x-amz-meta-a").result);
}

TEST(Body, VerifiesSignedChunks) {
  const Signer signer = signer_of("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
  std::string previous = signer.claim.signature;
  std::string body = signing::sign_chunk("hello", signer.claim, signer.signing_key, previous);
  body += signing::sign_chunk(" world", signer.claim, signer.signing_key, previous);
  body += signing::sign_chunk("", signer.claim, signer.signing_key, previous) + "\r\n";
  Upload got = upload(signer, body, "11");
  EXPECT_TRUE(got.result);
  EXPECT_EQ(got.bytes, kHello);
  body[body.find("world")] = 'W';
  EXPECT_EQ(upload(signer, body, "11").code, "SignatureDoesNotMatch");
}

TEST(Body, VerifiesChunksSignedWithSigV4a) {
  const std::string key = signing::derive_private_key("AKID", "secret");
  for (const bool trailer : {false, true}) {
    Signer signer = signer_of("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD");
    if (trailer) signer.claim.payload_sha256 += "-TRAILER";
    signer.claim.algorithm = signing::Algorithm::ecdsa;
    signer.signing_key = signing::public_key_of(key);
    std::string previous = signer.claim.signature;
    std::string body = signing::sign_chunk(kHello, signer.claim, key, previous);
    body += signing::sign_chunk("", signer.claim, key, previous);
    body += trailer ? signing::sign_trailers({{"x-amz-checksum-crc32", "DUoRhQ=="}}, signer.claim,
                                             key, previous)
                    : "\r\n";
    const Upload got = upload(signer, body, "11");
    EXPECT_TRUE(got.result);
    EXPECT_EQ(got.bytes, kHello);
    EXPECT_EQ(got.trailers.contains("x-amz-checksum-crc32"), trailer);
    EXPECT_EQ(upload(signer, body, "12").code, "IncompleteBody");
    EXPECT_EQ(upload(signer, body.substr(0, body.find("0;")), "11").code, "IncompleteBody");
    body[body.find("world")] = 'W';
    EXPECT_EQ(upload(signer, body, "11").code, "SignatureDoesNotMatch");
    previous = signer.claim.signature;
    body = signing::sign_chunk("hello", signer.claim, key, previous);
    body += signing::sign_chunk(" world", signer.claim, key, previous);
    EXPECT_EQ(upload(signer, body, "11").code, "InvalidChunkSizeError");
  }
}

TEST(Body, RequiresTheRequestsAlgorithmForChunks) {
  // SigV4a's verification key is public: as the key of an HMAC, it would let any client sign
  // chunks.
  for (const std::string mode : {"", "-TRAILER"}) {
    Signer signer = signer_of("STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + mode);
    std::string previous = signer.claim.signature;
    const std::string body =
        signing::sign_chunk("", signer.claim, signer.signing_key, previous) + "\r\n";
    signer.claim.algorithm = signing::Algorithm::ecdsa;
    EXPECT_EQ(upload(signer, body, "0").result.error().kind, Kind::invalid);
    signer = signer_of("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD" + mode);
    EXPECT_EQ(upload(signer, body, "0").result.error().kind, Kind::invalid);
  }
}

TEST(Body, RequiresTheTrailersOfASignedBody) {
  const Signer signer = signer_of("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER");
  std::string previous = signer.claim.signature;
  std::string chunks = signing::sign_chunk("hello", signer.claim, signer.signing_key, previous);
  chunks += signing::sign_chunk("", signer.claim, signer.signing_key, previous);
  EXPECT_EQ(upload(signer, chunks + "\r\n", "5").code, "SignatureDoesNotMatch");
  const std::string trailers = signing::sign_trailers({{"x-amz-checksum-crc32", "NhCmhg=="}},
                                                      signer.claim, signer.signing_key, previous);
  EXPECT_TRUE(upload(signer, chunks + trailers, "5").result);
}

TEST(Body, LimitsWholeBodies) {
  net::Request request;
  request.body = std::string(100, 'x');
  in_memory::Reply reply;
  in_memory::MemoryStream stream(request, reply, 7);
  EXPECT_EQ(read_whole(stream, 99).error().kind, Kind::exhausted);
  in_memory::MemoryStream again(request, reply, 7);
  EXPECT_EQ(read_whole(again, 100)->size(), 100u);
  request.content_length = 101;
  in_memory::MemoryStream announced(request, reply, 7);
  EXPECT_EQ(read_whole(announced, 100).error().kind, Kind::exhausted);
}

TEST(Headers, RemoveAwsChunkedFromTheContentEncoding) {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(without_chunked_encoding({{"Content-Encoding", "aws-chunked"}, {"A", "b"}}),
            (Fields{{"A", "b"}}));
  EXPECT_EQ(without_chunked_encoding({{"content-encoding", "gzip, aws-chunked"}}),
            (Fields{{"content-encoding", "gzip"}}));
}

}  // namespace
}  // namespace trainyard::api
