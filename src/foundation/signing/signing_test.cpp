// Tests with vectors.json (requests that botocore signed), round trips, and every kind of error.
#include "signing/signing.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::signing {
namespace {

const Instant kSignedAt = *parse_basic_iso8601("20261120T094500Z");
const Keys kKeys{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
const Scope kSignedScope{"eu-west-1", "sagemaker"};

Json vectors() {
  std::ifstream file("vectors.json");
  return *parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
}

HeaderList headers_of(const Json& given) {
  HeaderList out;
  for (const auto& field : given)
    out.emplace_back(field[0].get<std::string>(), field[1].get<std::string>());
  return out;
}

TEST(Vectors, VerifiesRequestsSignedByBotocore) {
  const Json all = vectors();
  ASSERT_GT(all["cases"].size(), 25u);
  for (const auto& one : all["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const HeaderList headers = headers_of(one["headers"]);
    const std::string target = one["target"], method = one["method"];
    auto read = read_claim(target, headers);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(*read);
    Claim claim = **read;
    EXPECT_EQ(claim.scope.service, one["service"]);
    EXPECT_EQ(claim.scope.region, one["region"]);
    EXPECT_EQ(claim.session_token,
              one["session"].get<bool>() ? all["token"].get<std::string>() : "");
    if (claim.payload_sha256.empty()) claim.payload_sha256 = one["body_sha256"];
    const auto good =
        verify(method, target, headers, claim, all["secret"].get<std::string>(), kSignedAt);
    EXPECT_TRUE(good) << good.error().message;
    EXPECT_FALSE(verify(method, target, headers, claim, "another secret", kSignedAt));
    EXPECT_FALSE(
        verify("PATCH", target, headers, claim, all["secret"].get<std::string>(), kSignedAt));
  }
}

TEST(Vectors, RejectsAmazonHeadersThatAreNotSigned) {
  const Json all = vectors();
  for (const auto& one : all["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    HeaderList headers = headers_of(one["headers"]);
    headers.emplace_back("X-Amz-Copy-Source", "/bucket/secret");
    headers.emplace_back("x-amz-acl", "public-read");
    headers.emplace_back("X-Amzn-Trace-Id", "proxies add this one");
    Claim claim = **read_claim(one["target"].get<std::string>(), headers);
    if (claim.payload_sha256.empty()) claim.payload_sha256 = one["body_sha256"];
    EXPECT_EQ(headers_not_signed(headers, claim),
              (std::vector<std::string>{"x-amz-copy-source", "x-amz-acl"}));
    const auto refused = verify(one["method"].get<std::string>(), one["target"].get<std::string>(),
                                headers, claim, all["secret"].get<std::string>(), kSignedAt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "There were headers present in the request which were not signed: "
              "x-amz-copy-source;x-amz-acl");
  }
}

TEST(Vectors, MakesTheSameSignaturesAsBotocore) {
  const Json all = vectors();
  for (const auto& one : all["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const HeaderList theirs = headers_of(one["headers"]);
    const auto find = [](const HeaderList& list, std::string_view name) {
      for (const auto& [key, value] : list)
        if (equals_ignoring_case(key, name)) return value;
      return std::string();
    };
    // botocore sends the hash of the body as a header only to S3; sign() always adds it.
    if (one["service"] != "s3" || one["name"].get<std::string>().starts_with("presigned")) continue;
    HeaderList plain = theirs;
    std::erase_if(plain, [](const auto& field) {
      return equals_ignoring_case(field.first, "authorization");
    });
    Keys keys = kKeys;
    if (one["session"].get<bool>()) {
      keys.access_key_id = "ASIAEXAMPLE";
      keys.session_token = all["token"];
    }
    const auto ours =
        sign(one["method"].get<std::string>(), one["target"].get<std::string>(), plain,
             one["body_sha256"].get<std::string>(), keys,
             {one["region"].get<std::string>(), one["service"].get<std::string>()}, kSignedAt);
    EXPECT_EQ(find(ours, "authorization"), find(theirs, "authorization"));
  }
}

struct Signed {
  std::string method = "POST", target = "/";
  HeaderList headers{{"Host", "127.0.0.1:4566"}, {"Content-Type", "application/x-amz-json-1.1"}};
  std::string body = "{}";

  void sign_now(Instant at = kSignedAt) {
    for (auto& field : sign(method, target, headers, sha256_hex(body), kKeys, kSignedScope, at))
      headers.push_back(field);
  }
  Result<void> check(Instant now = kSignedAt) const {
    auto claim = TRY(read_claim(target, headers));
    if (!claim) return denied("anonymous");
    return verify(method, target, headers, *claim, kKeys.secret_access_key, now);
  }
};

TEST(Verify, AcceptsSignaturesOfSign) {
  Signed request;
  request.sign_now();
  EXPECT_TRUE(request.check());
}

TEST(Verify, RejectsChangedRequests) {
  Signed request;
  request.sign_now();
  auto other = request;
  other.target = "/?x=1";
  EXPECT_FALSE(other.check());
  other = request;
  other.headers[1].second = "text/plain";
  EXPECT_FALSE(other.check());
  other = request;
  other.headers.emplace_back("Host", "elsewhere");
  EXPECT_FALSE(other.check());
}

TEST(Verify, ChecksTheTime) {
  Signed request;
  request.sign_now();
  EXPECT_TRUE(request.check(kSignedAt + kSkewMax));
  EXPECT_TRUE(request.check(kSignedAt - kSkewMax));
  const auto late = request.check(kSignedAt + kSkewMax + 1s);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Kind::denied);
  EXPECT_TRUE(late.error().message.starts_with("Signature expired")) << late.error().message;
  const auto early = request.check(kSignedAt - kSkewMax - 1s);
  ASSERT_FALSE(early);
  EXPECT_TRUE(early.error().message.starts_with("Signature not yet current"))
      << early.error().message;
}

TEST(Presign, SignsUntilItExpires) {
  const Scope s3{"us-west-2", "s3"};
  const std::string target =
      presign("GET", "/bucket/a%20b?versionId=x", "localhost:4566", kKeys, s3, kSignedAt, 60s);
  const HeaderList headers{{"Host", "localhost:4566"}};
  const auto claim = read_claim(target, headers);
  ASSERT_TRUE(claim && *claim);
  EXPECT_EQ((*claim)->lifetime, Duration(60s));
  EXPECT_EQ((*claim)->payload_sha256, kUnsignedPayload);
  EXPECT_TRUE(verify("GET", target, headers, **claim, kKeys.secret_access_key, kSignedAt + 60s));
  EXPECT_FALSE(verify("GET", target, headers, **claim, kKeys.secret_access_key, kSignedAt + 61s));
  EXPECT_FALSE(verify("PUT", target, headers, **claim, kKeys.secret_access_key, kSignedAt));
  EXPECT_FALSE(
      verify("GET", target, {{"Host", "elsewhere"}}, **claim, kKeys.secret_access_key, kSignedAt));
  EXPECT_FALSE(verify("GET", target, headers, **claim, kKeys.secret_access_key, kSignedAt - 16min));
}

TEST(Presign, AcceptsOnlyTheHashOfTheBodyAsUnsignedHeader) {
  const Scope s3{"us-west-2", "s3"};
  const std::string target =
      presign("PUT", "/bucket/key", "localhost:4566", kKeys, s3, kSignedAt, 60s);
  HeaderList headers{{"Host", "localhost:4566"},
                     {"x-amz-content-sha256", std::string(kUnsignedPayload)}};
  auto claim = read_claim(target, headers);
  ASSERT_TRUE(claim && *claim);
  EXPECT_TRUE(verify("PUT", target, headers, **claim, kKeys.secret_access_key, kSignedAt));
  // A value that differs from the signed one needs another signature.
  headers.back().second = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
  claim = read_claim(target, headers);
  EXPECT_EQ(check_signature("PUT", target, headers, **claim,
                            signing_key(kKeys.secret_access_key, "20261120", s3), kSignedAt),
            Verdict::wrong_signature);
  headers.back() = {"x-amz-copy-source", "/bucket/secret"};
  claim = read_claim(target, headers);
  EXPECT_EQ(check_signature("PUT", target, headers, **claim,
                            signing_key(kKeys.secret_access_key, "20261120", s3), kSignedAt),
            Verdict::headers_not_signed);
}

TEST(Verify, RequiresTheHashOfTheBodyToBeSigned) {
  Signed request;
  request.sign_now();
  for (auto& [name, value] : request.headers)
    if (name == "Authorization") {
      const auto at = value.find("x-amz-content-sha256;");
      ASSERT_NE(at, std::string::npos);
      value.erase(at, std::string_view("x-amz-content-sha256;").size());
    }
  const auto refused = request.check();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("not signed: x-amz-content-sha256"), std::string::npos)
      << refused.error().message;
}

TEST(ReadClaim, ReturnsNulloptForAnonymousRequests) {
  const auto claim = read_claim("/bucket?list-type=2", {{"Host", "h"}});
  ASSERT_TRUE(claim);
  EXPECT_FALSE(*claim);
}

TEST(ReadClaim, RejectsMalformedClaimsWithAnExplanation) {
  const std::string good =
      "AWS4-HMAC-SHA256 Credential=A/20261120/r/s/aws4_request, SignedHeaders=host;x-amz-date, "
      "Signature=00";
  const auto read = [](const std::string& authorization,
                       const std::string& date = "20261120T094500Z") {
    return read_claim("/", {{"Host", "h"}, {"X-Amz-Date", date}, {"Authorization", authorization}});
  };
  EXPECT_TRUE(read(good));
  const std::string bad[] = {
      "Basic abc",
      "AWS4-HMAC-SHA256",
      "AWS4-HMAC-SHA256X Credential=A/20261120/r/s/aws4_request, SignedHeaders=host, Signature=00",
      "AWS4-HMAC-SHA256 Credential=A/2026/r/s/aws4_request, SignedHeaders=host, Signature=00",
      "AWS4-HMAC-SHA256 Credential=A/20261120/r/s/aws5_request, SignedHeaders=host, Signature=00",
      "AWS4-HMAC-SHA256 Credential=/20261120/r/s/aws4_request, SignedHeaders=host, Signature=00",
      "AWS4-HMAC-SHA256 Credential=A/20261120/r//aws4_request, SignedHeaders=host, Signature=00",
      "AWS4-HMAC-SHA256 Credential=A, SignedHeaders=host, Signature=00",
      "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=00",
      "AWS4-HMAC-SHA256 Credential=A/20261120/r/s/aws4_request, Signature=00",
      "AWS4-HMAC-SHA256 Credential=A/20261120/r/s/aws4_request, SignedHeaders=x-amz-date, "
      "Signature=00",
      "AWS4-HMAC-SHA256 Credential=A/20261120/r/s/aws4_request, SignedHeaders=host",
  };
  for (const auto& text : bad) {
    const auto claim = read(text);
    ASSERT_FALSE(claim) << text;
    EXPECT_EQ(claim.error().kind, Kind::invalid) << text;
    EXPECT_FALSE(claim.error().message.empty());
  }
  EXPECT_FALSE(read(good, "yesterday"));
  EXPECT_FALSE(read(good, "20261121T000000Z"));  // not the day of the scope
  EXPECT_FALSE(read_claim("/", {{"Host", "h"}, {"Authorization", good}}));
  EXPECT_TRUE(read_claim(
      "/", {{"Host", "h"}, {"Date", "Fri, 20 Nov 2026 09:45:00 GMT"}, {"Authorization", good}}));
  EXPECT_FALSE(read_claim("/?X-Amz-Signature=00", {{"Host", "h"}}));
  EXPECT_FALSE(
      read_claim("/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00", {{"Host", "h"}}));
  const std::string presigned =
      "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F20261120%2Fr%2Fs%2Faws4_request&X-"
      "Amz-Date=20261120T094500Z"
      "&X-Amz-SignedHeaders=host&X-Amz-Signature=00";
  EXPECT_TRUE(read_claim(presigned + "&X-Amz-Expires=604800", {}));
  EXPECT_FALSE(read_claim(presigned + "&X-Amz-Expires=604801", {}));
  EXPECT_FALSE(read_claim(presigned + "&X-Amz-Expires=-1", {}));
  EXPECT_FALSE(read_claim(presigned + "&X-Amz-Expires=9223372036854775807", {}));
  EXPECT_FALSE(read_claim(presigned + "&X-Amz-Date=20261120T094500Z", {}));
}

TEST(Sha256Hex, MatchesPublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  hash.add("hel");
  hash.add("lo");
  EXPECT_EQ(hash.finish_hex(), sha256_hex("hello"));
  // RFC 4231, cases 2 and 6 (a key longer than a block).
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(std::string(131, '\xaa'),
                               "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace trainyard::signing
