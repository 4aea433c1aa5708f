// Tests SigV4a with requests that AWS's common runtime signed (asymmetric_vectors.json), and AWS's
// vector of the key derivation.
#include "signing/asymmetric.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/json.hpp"
#include "base/text.hpp"
#include "signing/signing.hpp"

namespace trainyard::signing {
namespace {

const Instant kNow = *parse_basic_iso8601("20261120T094500Z");

// The vector of aws-c-auth, tests/key_derivation_tests.c ("Values derived in synchronicity with
// Golang and IAM implementations"), and of aws-sdk-go-v2, internal/v4a.
TEST(KeyDerivation, MatchesTheVectorOfAws) {
  const std::string key =
      derive_private_key("AKISORANDOMAASORANDOM", "q+jcrXGc+0zWN6uzclKVhvMmUsIfRPa4rlRandom");
  EXPECT_EQ(to_hex(key), "7fd3bd010c0d9c292141c2b77bfbde1042c92e6836fff749d1269ec890fca1bd");
  EXPECT_EQ(to_hex(public_key_of(key)),
            "0415d242ceebf8d8169fd6a8b5a746c41140414c3b07579038da06af89190fffcb"
            "0515242cedd82e94799482e4c0514b505afccf2c0c98d6a553bf539f424c5ec0");
}

TEST(Ecdsa, RejectsOtherTextsKeysAndSignatures) {
  const std::string key = derive_private_key("AKID", "secret"), point = public_key_of(key);
  const std::string signature = sign_ecdsa(key, "text");
  EXPECT_TRUE(verify_ecdsa(point, "text", signature));
  EXPECT_FALSE(verify_ecdsa(point, "texts", signature));
  EXPECT_FALSE(
      verify_ecdsa(public_key_of(derive_private_key("AKIE", "secret")), "text", signature));
  EXPECT_FALSE(verify_ecdsa(std::string(65, '\4'), "text", signature)) << "not on the curve";
  EXPECT_FALSE(verify_ecdsa("", "text", signature));
  for (size_t at = 0; at < signature.size(); ++at) {
    std::string changed = signature;
    changed[at] ^= 1;
    EXPECT_FALSE(verify_ecdsa(point, "text", changed)) << at;
    EXPECT_FALSE(verify_ecdsa(point, "text", signature.substr(0, at))) << at;
  }
  EXPECT_FALSE(verify_ecdsa(point, "text", signature + "0"));
  EXPECT_FALSE(verify_ecdsa(point, "text", from_hex("3006020100020100").value())) << "zeros";
}

struct Case {
  std::string name, method, target, region_set, token, body_sha256;
  HeaderList headers;
};

std::vector<Case> cases(std::string& key_id, std::string& secret) {
  std::ifstream file("asymmetric_vectors.json");
  const Json all = *parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
  key_id = all["access_key"];
  secret = all["secret"];
  std::vector<Case> out;
  for (const auto& one : all["cases"]) {
    out.push_back({one["name"],
                   one["method"],
                   one["target"],
                   one["region_set"],
                   one["token"],
                   one["body_sha256"],
                   {}});
    for (const auto& field : one["headers"])
      out.back().headers.emplace_back(field[0].get<std::string>(), field[1].get<std::string>());
  }
  return out;
}

TEST(SigV4a, VerifiesRequestsSignedByTheCommonRuntime) {
  std::string key_id, secret;
  const auto all = cases(key_id, secret);
  ASSERT_GT(all.size(), 12u);
  for (const Case& one : all) {
    SCOPED_TRACE(one.name);
    const auto read = read_claim(one.target, one.headers);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(*read);
    Claim claim = **read;
    EXPECT_EQ(claim.algorithm, Algorithm::ecdsa);
    EXPECT_EQ(claim.access_key_id, key_id);
    EXPECT_EQ(claim.region_set, one.region_set);
    EXPECT_EQ(claim.scope.region, "");
    EXPECT_EQ(claim.session_token, one.token);
    if (claim.payload_sha256.empty()) claim.payload_sha256 = one.body_sha256;
    // The server sets its own region in the claim; a SigV4a scope has none.
    claim.scope.region = "eu-west-1";
    const auto good = verify(one.method, one.target, one.headers, claim, secret, kNow);
    EXPECT_TRUE(good) << good.error().message;
    EXPECT_FALSE(verify("PATCH", one.target, one.headers, claim, secret, kNow));
    EXPECT_FALSE(verify(one.method, one.target, one.headers, claim, "another", kNow));
    EXPECT_FALSE(verify(one.method, one.target, one.headers, claim, secret, kNow + 16min));
    HeaderList more = one.headers;
    more.emplace_back("x-amz-copy-source", "/bucket/secret");
    EXPECT_FALSE(verify(one.method, one.target, more, claim, secret, kNow));
    // The signature covers the region set.
    HeaderList elsewhere = one.headers;
    std::string target = one.target;
    for (auto& [name, value] : elsewhere)
      if (equals_ignoring_case(name, "x-amz-region-set")) value = "ap-south-1";
    if (const auto at = target.find("X-Amz-Region-Set="); at != std::string::npos)
      target.insert(at + 17, "ap-south-1%2C");
    EXPECT_FALSE(verify(one.method, target, elsewhere, claim, secret, kNow));
    // A signature of one kind does not verify as the other.
    claim.algorithm = Algorithm::hmac;
    EXPECT_FALSE(verify(one.method, one.target, one.headers, claim, secret, kNow));
  }
}

TEST(SigV4a, RejectsMalformedClaims) {
  const auto read = [](const std::string& authorization, const std::string& region_set = "*") {
    HeaderList headers{
        {"Host", "h"}, {"X-Amz-Date", "20261120T094500Z"}, {"Authorization", authorization}};
    if (!region_set.empty()) headers.emplace_back("X-Amz-Region-Set", region_set);
    return read_claim("/", headers);
  };
  const std::string head = "AWS4-ECDSA-P256-SHA256 Credential=";
  const std::string tail = ", SignedHeaders=host;x-amz-date;x-amz-region-set, Signature=00";
  EXPECT_TRUE(read(head + "A/20261120/s3/aws4_request" + tail));
  for (const std::string credential :
       {"A/20261120/s3", "/20261120/s3/aws4_request", "A/2026/s3/aws4_request",
        "A/20261120//aws4_request", "A/20261120/s3/aws5_request", "A"})
    EXPECT_FALSE(read(head + credential + tail)) << credential;
  EXPECT_FALSE(read(head + "A/20261120/s3/aws4_request" + tail, ""));
  EXPECT_FALSE(read(head + "A/20261120/s3/aws4_request" + tail, std::string(2000, 'a')));
  // SigV4a reads the region of a SigV4 scope as a part of the key id, which is then unknown.
  const auto with_region = read(head + "A/20261120/us-east-1/s3/aws4_request" + tail);
  EXPECT_FALSE(with_region && *with_region && (*with_region)->access_key_id == "A");
}

TEST(RegionSet, MatchesNamesAndPatterns) {
  for (const char* set :
       {"eu-west-1", "*", "eu-*", "us-east-1, eu-west-1", "us-*,*-west-*", "eu*west*1", "*1"})
    EXPECT_TRUE(region_set_includes(set, "eu-west-1")) << set;
  for (const char* set :
       {"", "eu-west-2", "eu-west", "us-*", "eu-west-1x", "*2", "eu*east*1", ",", "eu-west-1*2"})
    EXPECT_FALSE(region_set_includes(set, "eu-west-1")) << set;
}

}  // namespace
}  // namespace trainyard::signing
