#include "policy/policy.hpp"

#include <gtest/gtest.h>

#include "policy/statement.hpp"
#include "policy/testing/test_policies.hpp"

namespace trainyard::policy {
namespace {

constexpr auto kIdentity = PolicyKind::identity;
constexpr auto kResource = PolicyKind::resource;
constexpr auto kTrust = PolicyKind::trust;

TEST(Policy, KeepsTheDocumentUnchanged) {
  const std::string json = R"( {"Version":"2012-10-17", "Id":"one",
    "Statement":[{"Sid":"A1","Effect":"Allow","NotAction":["iam:*"],"NotResource":"arn:aws:s3:::x/${aws:username}",
    "Condition":{"StringLike":{"s3:prefix":["${AWS:UserName}/*"]}, "Null":{"aws:TokenIssueTime":"true"}}}]} )";
  const auto policy = test::parse(json);
  EXPECT_EQ(policy->document(), json);
  EXPECT_EQ(policy->id(), "one");
  EXPECT_EQ(policy->version(), "2012-10-17");
  ASSERT_EQ(policy->statements().size(), 1u);
  EXPECT_EQ(policy->statements()[0].sid, "A1");
  EXPECT_TRUE(policy->statements()[0].not_action && policy->statements()[0].not_resource);
  EXPECT_EQ(policy->context_keys(),
            (std::vector<std::string>{"aws:username", "aws:TokenIssueTime", "s3:prefix"}));
}

TEST(Policy, HasASizeWithoutWhiteSpaceBetweenTokens) {
  EXPECT_EQ(policy_size("{ }"), 2u);
  EXPECT_EQ(policy_size("{ \"a b\" :\n\t\"c \\\" d\" }"),
            std::string_view("{\"a b\":\"c \\\" d\"}").size());
}

const std::string kUser = R"("Principal":{"AWS":"arn:aws:iam::111122223333:user/ana"})";
struct Refused {
  PolicyKind kind;
  std::string json, message;
};

// Documents that are rejected, with the texts of AWS.
const Refused kRefused[] = {
    {kIdentity, "", "Syntax errors in policy."},
    {kIdentity, "[]", "Syntax errors in policy."},
    {kIdentity, "{", "Syntax errors in policy."},
    {kIdentity, "{}", "Missing required field Statement"},
    {kIdentity, R"({"Statement":[]})", "Missing required field Statement"},
    {kIdentity, R"({"Statement":[7]})", "Syntax errors in policy."},
    {kIdentity, R"({"Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}],"Other":1})",
     "Syntax errors in policy."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"*","Actions":"*"}})",
     "Syntax errors in policy."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Effect":"Deny","Action":"*","Resource":"*"}})",
     "Syntax errors in policy."},
    {kIdentity,
     R"({"Version":"2013-01-01","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}})",
     "The policy must contain a valid version string"},
    {kIdentity, R"({"Version":7,"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}})",
     "Syntax errors in policy."},
    {kIdentity, R"({"Statement":{"Action":"*","Resource":"*"}})", "Missing required field Effect"},
    {kIdentity, R"({"Statement":{"Effect":"allow","Action":"*","Resource":"*"}})",
     "Invalid effect: allow"},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Resource":"*"}})",
     "Policy statement must contain actions."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":[],"Resource":"*"}})",
     "Policy statement must contain actions."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*"}})",
     "Policy statement must contain resources."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*","NotAction":"*","Resource":"*"}})",
     "Syntax errors in policy."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":7,"Resource":"*"}})",
     "Syntax errors in policy."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"GetObject","Resource":"*"}})",
     "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*:Get*","Resource":"*"}})",
     "Vendor * is not valid"},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"bucket/*"}})",
     "Resource bucket/* must be in ARN format or \"*\"."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"arn:xyz:s3:::a"}})",
     "Partition \"xyz\" is not valid for resource \"arn:xyz:s3:::a\"."},
    {kIdentity,
     R"({"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"arn:aws:s3:::${a"}})",
     "Invalid policy variable in policy."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"*",)" + kUser + "}}",
     "Policy document should not specify a principal."},
    {kIdentity, R"({"Statement":{"Sid":"a b","Effect":"Allow","Action":"*","Resource":"*"}})",
     "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular "
     "expression [0-9A-Za-z]*"},
    {kIdentity,
     R"({"Statement":[{"Sid":"a","Effect":"Allow","Action":"*","Resource":"*"},{"Sid":"a","Effect":"Deny","Action":"*","Resource":"*"}]})",
     "Statement IDs (SID) in a single policy must be unique."},
    {kIdentity, R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":[]}})",
     "Syntax errors in policy."},
    {kIdentity,
     R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"*","Condition":{"Like":{}}}})",
     "Invalid Condition type : Like"},
    {kTrust, R"({"Statement":{"Effect":"Allow","Action":"sts:AssumeRole"}})",
     "Missing required field Principal"},
    {kTrust,
     R"({"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*",)" + kUser + "}}",
     "Has prohibited field Resource"},
    {kTrust, R"({"Statement":{"Effect":"Allow","Action":"s3:*",)" + kUser + "}}",
     "AssumeRole policy may only specify STS AssumeRole actions."},
    {kTrust,
     R"({"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"ana"}}})",
     "Invalid principal in policy: \"AWS\":\"ana\""},
    {kTrust,
     R"({"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"arn:aws:iam::111122223333:user/*"}}})",
     "Invalid principal in policy: \"AWS\":\"arn:aws:iam::111122223333:user/*\""},
    {kTrust,
     R"({"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"AWS":"arn:aws:iam::111122223333:group/team"}}})",
     "Invalid principal in policy: \"AWS\":\"arn:aws:iam::111122223333:group/team\""},
    {kTrust,
     R"({"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"*"}}})",
     "Invalid principal in policy: \"Service\":\"*\""},
    {kTrust,
     R"({"Statement":{"Effect":"Allow","Action":"sts:AssumeRole","NotPrincipal":{"AWS":"*"}}})",
     "AssumeRolePolicy contained invalid field NotPrincipal"},
    {kResource, "nonsense", "Policies must be valid JSON and the first byte must be '{'"},
    {kResource, R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}})",
     "Missing required field Principal"},
    {kResource, R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"ana"}})",
     "Invalid principal in policy"},
    {kResource,
     R"({"Statement":{"Effect":"Allow","Action":"*","Resource":"bucket","Principal":"*"}})",
     "Policy has invalid resource"},
    {kResource, R"({"Statement":{"Effect":"Allow","Action":"*","Principal":"*"}})",
     "Missing required field Resource"},
};

TEST(Policy, RejectsPoliciesThatAwsRejects) {
  for (const auto& [kind, json, message] : kRefused) {
    const auto parsed = parse_policy(json, kind);
    ASSERT_FALSE(parsed) << json;
    EXPECT_EQ(parsed.error().message, message) << json;
    EXPECT_EQ(parsed.error().kind, Kind::invalid);
  }
}

TEST(Policy, LimitsDocuments) {
  const auto with = [](const std::string& actions) {
    return R"({"Statement":{"Effect":"Allow","Resource":"*","Action":)" + actions + "}}";
  };
  const auto repeated = [](const std::string& text, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += (i ? "," : "") + text;
    return all;
  };
  const auto big =
      parse_policy(with("\"s3:" + std::string(kRoleInlineBytesMax, 'x') + "\""), kIdentity);
  ASSERT_FALSE(big);
  EXPECT_EQ(big.error().kind, Kind::exhausted);
  EXPECT_EQ(big.error().message, "Cannot exceed quota for PolicySize: 10240");
  EXPECT_TRUE(parse_policy(with("\"s3:x\"") + std::string(kRoleInlineBytesMax, ' '), kIdentity))
      << "white space does not count";
  EXPECT_FALSE(parse_policy(with("\"s3:x\"") + std::string(kDocumentBytesMax, ' '), kIdentity));
  EXPECT_TRUE(parse_policy(with("[" + repeated("\"*\"", kValuesMax) + "]"), kIdentity));
  EXPECT_FALSE(parse_policy(with("[" + repeated("\"*\"", kValuesMax + 1) + "]"), kIdentity));
  EXPECT_FALSE(parse_policy(with(std::string(60'000, '[') + std::string(60'000, ']')), kIdentity));
  EXPECT_FALSE(parse_policy(std::string(5'000, '['), kIdentity));
  EXPECT_FALSE(parse_policy(with("\"s3:\xff\""), kIdentity)) << "not UTF-8";
  EXPECT_FALSE(parse_policy(with("\"s3:\\ud800\""), kIdentity)) << "half a surrogate pair";
}

}  // namespace
}  // namespace trainyard::policy
