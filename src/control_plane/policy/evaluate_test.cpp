// Tests the rules and examples of AWS's documentation of policy evaluation, with other names.
#include "policy/evaluate.hpp"

#include "base/text.hpp"
#include "policy/testing/test_policies.hpp"

namespace trainyard::policy {
namespace {

using test::by_session;
using test::by_user;
using test::Owned;
using test::statement;
using test::verdict;

constexpr auto kAllowed = Verdict::allowed;
constexpr auto kImplicit = Verdict::implicitly_denied;
constexpr auto kExplicit = Verdict::explicitly_denied;

const std::string kObject = "arn:aws:s3:::data/x";

Owned allow(const std::string& actions, const std::string& resource = "*") {
  return statement(R"("Effect":"Allow","Action":")" + actions + R"(","Resource":")" + resource +
                   "\"");
}

Owned deny(const std::string& actions) {
  return statement(R"("Sid":"No","Effect":"Deny","Action":")" + actions + R"(","Resource":"*")");
}

Owned bucket(const std::string& effect, const std::string& principal) {
  return statement(R"("Sid":"Bucket","Effect":")" + effect + R"(","Principal":)" + principal +
                       R"(,"Action":"s3:GetObject","Resource":"arn:aws:s3:::data/*")",
                   PolicyKind::resource);
}

Owned trust(const std::string& principal, const std::string& more = "") {
  return statement(
      R"("Effect":"Allow","Principal":)" + principal + R"(,"Action":"sts:AssumeRole")" + more,
      PolicyKind::trust);
}

// A row of AWS's flow chart: the policies that exist, by the names of policy_named(), and the
// decision.
struct FlowRow {
  const char* says;
  const char* identity;
  const char* bucket;
  const char* boundary;
  const char* session;
  Verdict verdict;
  const char* reason;
};

constexpr const char* kIdentityBased = "identity-based policy";
constexpr const char* kResourceBased = "resource-based policy";
constexpr const char* kBoundary = "permissions boundary";
constexpr const char* kSession = "session policy";

// Makes a policy: "get", "other" and "no" are identity policies; the others are bucket policies.
Owned policy_named(std::string_view name) {
  if (name == "get") return allow("s3:GetObject");
  if (name == "other") return allow("logs:*");
  if (name == "no") return deny("s3:*");
  if (name == "user") return bucket("Allow", R"({"AWS":"arn:aws:iam::111122223333:user/ana"})");
  if (name == "role") return bucket("Allow", R"({"AWS":"arn:aws:iam::111122223333:role/train"})");
  if (name == "session")
    return bucket("Allow", R"({"AWS":"arn:aws:sts::111122223333:assumed-role/train/session"})");
  if (name == "account") return bucket("Allow", R"({"AWS":"111122223333"})");
  if (name == "foreign") return bucket("Allow", R"({"AWS":"444455556666"})");
  if (name == "everyone") return bucket("Allow", R"("*")");
  if (name == "none") return bucket("Deny", R"({"AWS":"arn:aws:iam::111122223333:root"})");
  ADD_FAILURE() << "unknown policy " << name;
  return nullptr;
}

void expect_flow(const FlowRow& row, const Request& request) {
  std::vector<Owned> owned;
  const auto named = [&](const char* names) {
    std::vector<const Policy*> list;
    for (const std::string_view name : split(names, ' ')) {
      if (name.empty()) continue;
      owned.push_back(policy_named(name));
      list.push_back(owned.back().get());
    }
    return list;
  };
  Policies policies{named(row.identity), named(row.bucket), {}, nullptr};
  if (*row.boundary) policies.boundary = named(row.boundary).front();
  if (*row.session) policies.session = named(row.session);
  const Decision decision = evaluate(request, policies);
  EXPECT_EQ(decision.verdict, row.verdict) << row.says;
  EXPECT_EQ(decision.reason_policy_type, row.reason) << row.says;
}

// Columns: identity, bucket, boundary, session.
constexpr FlowRow kFlowOfUsers[] = {
    {"nothing allows", "", "", "", "", kImplicit, kIdentityBased},
    {"another action is allowed", "other", "", "", "", kImplicit, kIdentityBased},
    {"identity allows", "other get", "", "", "", kAllowed, kIdentityBased},
    {"identity denies", "get no", "", "", "", kExplicit, kIdentityBased},
    {"identity denies what the bucket allows", "no", "user", "", "", kExplicit, kIdentityBased},
    {"the bucket denies the account", "get", "none", "", "", kExplicit, kResourceBased},
    {"the bucket allows the user", "", "user", "", "", kAllowed, kResourceBased},
    {"the bucket allows everyone", "", "everyone", "", "", kAllowed, kResourceBased},
    {"the bucket allows the account, the identity nothing", "", "account", "", "", kImplicit,
     kIdentityBased},
    {"the bucket allows another account", "", "foreign", "", "", kImplicit, kIdentityBased},
    {"the boundary allows too", "get", "", "get", "", kAllowed, kIdentityBased},
    {"the boundary does not", "get", "", "other", "", kImplicit, kBoundary},
    {"the boundary alone allows nothing", "", "", "get", "", kImplicit, kIdentityBased},
    {"the boundary denies", "get", "", "no", "", kExplicit, kBoundary},
    {"the boundary does not limit what the bucket gives a user", "", "user", "other", "", kAllowed,
     kResourceBased},
    {"the boundary denies what the bucket gives", "", "user", "no", "", kExplicit, kBoundary},
};

constexpr FlowRow kFlowOfSessions[] = {
    {"the role allows", "get", "", "", "", kAllowed, kIdentityBased},
    {"the session policy allows too", "get", "", "", "get", kAllowed, kIdentityBased},
    {"the session policy does not", "get", "", "", "other", kImplicit, kSession},
    {"one of two session policies does", "get", "", "", "other get", kAllowed, kIdentityBased},
    {"the session policy alone allows nothing", "", "", "", "get", kImplicit, kIdentityBased},
    {"the session policy denies", "get", "", "", "no", kExplicit, kSession},
    {"the bucket allows the role", "", "role", "", "", kAllowed, kResourceBased},
    {"the session policy limits what the bucket gives the role", "", "role", "", "other", kImplicit,
     kSession},
    {"the boundary limits what the bucket gives the role", "", "role", "other", "", kImplicit,
     kBoundary},
    {"nothing limits what the bucket gives the session", "", "session", "other", "other", kAllowed,
     kResourceBased},
    {"everyone is as good as the role", "", "everyone", "", "other", kImplicit, kSession},
    {"the bucket allows a user, not the session", "", "user", "", "", kImplicit, kIdentityBased},
};

TEST(Evaluate, FollowsTheOrderOfOneAccount) {
  for (const FlowRow& row : kFlowOfUsers) expect_flow(row, by_user("ana", "s3:GetObject", kObject));
  for (const FlowRow& row : kFlowOfSessions)
    expect_flow(row, by_session("train", "s3:GetObject", kObject));
}

TEST(Evaluate, AllowsNothingWithEmptySessionPolicies) {
  const Owned all = allow("*");
  Policies policies;
  policies.identity = {all.get()};
  policies.session.emplace();
  EXPECT_EQ(evaluate(by_session("train", "s3:GetObject", kObject), policies).verdict, kImplicit);
}

TEST(Evaluate, DescribesDenials) {
  const Owned no = deny("s3:*");
  const Request request = by_user("ana", "s3:GetObject", kObject);
  Policies policies;
  EXPECT_EQ(describe_denial(request, evaluate(request, policies)),
            "User: arn:aws:iam::111122223333:user/ana is not authorized to perform: s3:GetObject "
            "on resource: arn:aws:s3:::data/x because no identity-based policy allows the "
            "s3:GetObject action");
  policies.identity = {no.get()};
  const Decision decision = evaluate(request, policies);
  EXPECT_EQ(decision.statement_id, "No");
  EXPECT_EQ(describe_denial(request, decision),
            "User: arn:aws:iam::111122223333:user/ana is not authorized to perform: s3:GetObject "
            "on resource: arn:aws:s3:::data/x with an explicit deny in an identity-based policy");
}

TEST(Evaluate, RequiresThatTheTrustPolicyAllows) {
  const Owned assume = allow("sts:AssumeRole"), other = allow("logs:*");
  const Owned account = trust(R"({"AWS":"111122223333"})"),
              root = trust(R"({"AWS":"arn:aws:iam::111122223333:root"})");
  const Owned ana = trust(R"({"AWS":"arn:aws:iam::111122223333:user/ana"})");
  const Owned role = trust(R"({"AWS":"arn:aws:iam::111122223333:role/train"})");
  const Owned service = trust(R"({"Service":["sagemaker.amazonaws.com","batch.amazonaws.com"]})");
  const Owned federated = trust(R"({"Federated":"accounts.google.com"})");
  const Owned external = trust(R"({"AWS":"arn:aws:iam::111122223333:user/ana"})",
                               R"(,"Condition":{"StringEquals":{"sts:ExternalId":"e1"}})");
  const auto assumes = [](Request request, const Owned& trusted, const Owned& identity) {
    request.action = "sts:AssumeRole";
    request.resource = "arn:aws:iam::111122223333:role/target";
    Policies policies;
    policies.resource = {trusted.get()};
    if (identity) policies.identity = {identity.get()};
    return evaluate(request, policies).verdict;
  };
  const Request user = by_user("ana", "", ""), ben = by_user("ben", "", ""),
                session = by_session("train", "", "");
  EXPECT_EQ(assumes(user, ana, nullptr), kAllowed)
      << "named in one account: no identity policy is needed";
  EXPECT_EQ(assumes(user, ana, deny("sts:*")), kExplicit);
  EXPECT_EQ(assumes(ben, ana, assume), kImplicit)
      << "an identity policy without a trust policy is not enough";
  EXPECT_EQ(assumes(user, account, nullptr), kImplicit)
      << "the account delegates to identity policies";
  EXPECT_EQ(assumes(user, account, assume), kAllowed);
  EXPECT_EQ(assumes(user, root, other), kImplicit);
  EXPECT_EQ(assumes(session, root, assume), kAllowed);
  EXPECT_EQ(assumes(session, role, nullptr), kAllowed) << "a session of the role";
  EXPECT_EQ(assumes(by_session("other", "", ""), role, assume), kImplicit);
  EXPECT_EQ(assumes(user, service, assume), kImplicit);
  EXPECT_EQ(assumes({.service = "sagemaker.amazonaws.com"}, service, nullptr), kAllowed);
  EXPECT_EQ(assumes({.service = "ec2.amazonaws.com"}, service, nullptr), kImplicit);
  EXPECT_EQ(assumes({.service = "sagemaker.amazonaws.com"}, ana, nullptr), kImplicit);
  EXPECT_EQ(assumes({.federated = "accounts.google.com"}, federated, nullptr), kAllowed);
  EXPECT_EQ(assumes(user, external, nullptr), kImplicit);
  Request with_id = user;
  with_id.values.set("sts:ExternalId", "e1");
  EXPECT_EQ(assumes(with_id, external, nullptr), kAllowed);
}

// A principal does not match a name that is only a part of its name, or contains it.
TEST(Evaluate, ComparesCompleteNamesOfPrincipals) {
  const Owned role = bucket("Allow", R"({"AWS":"arn:aws:iam::111122223333:role/train"})");
  Policies policies;
  policies.resource = {role.get()};
  EXPECT_EQ(evaluate(by_session("train", "s3:GetObject", kObject), policies).verdict, kAllowed);
  EXPECT_EQ(evaluate(by_session("train2", "s3:GetObject", kObject), policies).verdict, kImplicit);
  Request anonymous{.action = "s3:GetObject", .resource = kObject};
  EXPECT_EQ(evaluate(anonymous, policies).verdict, kImplicit);
  const Owned everyone = bucket("Allow", R"({"AWS":"*"})");
  policies.resource = {everyone.get()};
  EXPECT_EQ(evaluate(anonymous, policies).verdict, kAllowed);
}

TEST(Evaluate, ExceptsPrincipalsOfNotPrincipal) {
  const Owned all = allow("s3:*");
  const Owned others = statement(
      R"("Effect":"Deny","NotPrincipal":{"AWS":["arn:aws:iam::111122223333:user/ana","arn:aws:iam::111122223333:root","arn:aws:iam::111122223333:role/train"]},
         "Action":"s3:*","Resource":"arn:aws:s3:::data/*")",
      PolicyKind::resource);
  Policies policies;
  policies.identity = {all.get()};
  policies.resource = {others.get()};
  EXPECT_EQ(evaluate(by_user("ana", "s3:GetObject", kObject), policies).verdict, kAllowed);
  EXPECT_EQ(evaluate(by_user("ben", "s3:GetObject", kObject), policies).verdict, kExplicit)
      << "the account's root in the list is not the whole account";
  EXPECT_EQ(evaluate(by_session("train", "s3:GetObject", kObject), policies).verdict, kAllowed);
}

// -- examples ------------------------------------------------------------------------------------

struct Example {
  const char* says;
  Request request;
  Verdict verdict;
};

void check(const Owned& policy, const std::vector<Example>& examples) {
  for (const Example& one : examples)
    EXPECT_EQ(verdict(one.request, policy), one.verdict)
        << one.says << ": " << one.request.action << " " << one.request.resource;
}

TEST(Evaluate, ExampleHomeDirectories) {
  const Owned policy = test::parse(R"({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": ["s3:ListAllMyBuckets", "s3:GetBucketLocation"], "Resource": "*"},
    {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::data",
     "Condition": {"StringLike": {"s3:prefix": ["", "home/", "home/${aws:username}/*"]}}},
    {"Effect": "Allow", "Action": "s3:*", "Resource": ["arn:aws:s3:::data/home/${aws:username}", "arn:aws:s3:::data/home/${aws:username}/*"]}]})");
  check(
      policy,
      {
          {"own object", by_user("ana", "s3:PutObject", "arn:aws:s3:::data/home/ana/x"), kAllowed},
          {"someone else's", by_user("ana", "s3:PutObject", "arn:aws:s3:::data/home/ben/x"),
           kImplicit},
          {"a name that begins alike",
           by_user("an", "s3:GetObject", "arn:aws:s3:::data/home/ana/x"), kImplicit},
          {"list own",
           by_user("ana", "s3:ListBucket", "arn:aws:s3:::data", {{"s3:prefix", {"home/ana/x"}}}),
           kAllowed},
          {"list the top",
           by_user("ana", "s3:ListBucket", "arn:aws:s3:::data", {{"s3:prefix", {""}}}), kAllowed},
          {"list others",
           by_user("ana", "s3:ListBucket", "arn:aws:s3:::data", {{"s3:prefix", {"home/ben/"}}}),
           kImplicit},
          {"list without a prefix", by_user("ana", "s3:ListBucket", "arn:aws:s3:::data"),
           kImplicit},
          {"buckets", by_user("ana", "s3:ListAllMyBuckets", "*"), kAllowed},
      });
}

TEST(Evaluate, ExampleDenyWithoutMfaOrFromOutside) {
  const Owned policy = test::parse(R"({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "*", "Resource": "*"},
    {"Effect": "Deny", "NotAction": ["iam:ListUsers", "sts:GetSessionToken"], "Resource": "*",
     "Condition": {"BoolIfExists": {"aws:MultiFactorAuthPresent": "false"}}},
    {"Effect": "Deny", "Action": "*", "Resource": "*",
     "Condition": {"NotIpAddress": {"aws:SourceIp": ["192.0.2.0/24", "203.0.113.0/24"]}, "Bool": {"aws:ViaAWSService": "false"}}}]})");
  const auto from = [](const char* address, const char* factor, const char* action,
                       const char* via = "false") {
    return by_user("ana", action, "*",
                   {{"aws:SourceIp", {address}},
                    {"aws:MultiFactorAuthPresent", {factor}},
                    {"aws:ViaAWSService", {via}}});
  };
  check(policy,
        {
            {"inside, with a factor", from("192.0.2.9", "true", "s3:ListAllMyBuckets"), kAllowed},
            {"inside, without", from("192.0.2.9", "false", "s3:ListAllMyBuckets"), kExplicit},
            {"what needs no factor", from("192.0.2.9", "false", "iam:ListUsers"), kAllowed},
            {"outside", from("198.51.100.1", "true", "iam:ListUsers"), kExplicit},
            {"outside, by a service", from("198.51.100.1", "true", "iam:ListUsers", "true"),
             kAllowed},
            {"no factor known: IfExists is true without the key",
             by_user("ana", "s3:ListAllMyBuckets", "*",
                     {{"aws:SourceIp", {"192.0.2.9"}}, {"aws:ViaAWSService", {"false"}}}),
             kExplicit},
        });
}

TEST(Evaluate, ExampleTags) {
  const Owned policy = test::parse(R"({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "sagemaker:*", "Resource": "*",
     "Condition": {"StringEquals": {"aws:ResourceTag/Team": "${aws:PrincipalTag/Team}"}}},
    {"Effect": "Allow", "Action": "sagemaker:CreateTrainingJob", "Resource": "arn:aws:sagemaker:*:111122223333:training-job/*",
     "Condition": {"StringEquals": {"aws:RequestTag/Team": ["red", "blue"]}, "ForAllValues:StringEquals": {"aws:TagKeys": ["Team", "Cost"]}}},
    {"Effect": "Deny", "Action": "sagemaker:DeleteTags", "Resource": "*", "Condition": {"ForAnyValue:StringEquals": {"aws:TagKeys": "Team"}}}]})");
  const std::string job = "arn:aws:sagemaker:eu-west-1:111122223333:training-job/one";
  check(policy,
        {
            {"own team's",
             by_user("ana", "sagemaker:StopTrainingJob", job,
                     {{"aws:ResourceTag/Team", {"red"}}, {"aws:PrincipalTag/Team", {"red"}}}),
             kAllowed},
            {"another team's",
             by_user("ana", "sagemaker:StopTrainingJob", job,
                     {{"aws:ResourceTag/Team", {"blue"}}, {"aws:PrincipalTag/Team", {"red"}}}),
             kImplicit},
            {"no team, untagged", by_user("ana", "sagemaker:StopTrainingJob", job), kImplicit},
            {"no team, empty tag",
             by_user("ana", "sagemaker:StopTrainingJob", job, {{"aws:ResourceTag/Team", {""}}}),
             kImplicit},
            {"create with a tag",
             by_user("ana", "sagemaker:CreateTrainingJob", job,
                     {{"aws:RequestTag/Team", {"blue"}}, {"aws:TagKeys", {"Team", "Cost"}}}),
             kAllowed},
            {"create with one tag too many",
             by_user("ana", "sagemaker:CreateTrainingJob", job,
                     {{"aws:RequestTag/Team", {"blue"}}, {"aws:TagKeys", {"Team", "Other"}}}),
             kImplicit},
            {"create without", by_user("ana", "sagemaker:CreateTrainingJob", job), kImplicit},
            {"remove the team's tag",
             by_user("ana", "sagemaker:DeleteTags", job,
                     {{"aws:TagKeys", {"Cost", "Team"}},
                      {"aws:ResourceTag/Team", {"red"}},
                      {"aws:PrincipalTag/Team", {"red"}}}),
             kExplicit},
        });
}

TEST(Evaluate, ExampleSageMakerUser) {
  const Owned policy = test::parse(R"({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": ["sagemaker:CreateTrainingJob", "sagemaker:DescribeTrainingJob", "sagemaker:StopTrainingJob"],
     "Resource": "arn:aws:sagemaker:*:*:training-job/${aws:username}-*"},
    {"Effect": "Deny", "Action": "sagemaker:CreateTrainingJob", "Resource": "*",
     "Condition": {"ForAnyValue:StringNotLike": {"sagemaker:InstanceTypes": ["ml.m5.*", "ml.g5.xlarge"]}}},
    {"Effect": "Deny", "Action": "sagemaker:CreateTrainingJob", "Resource": "*", "Condition": {"NumericGreaterThan": {"sagemaker:MaxRuntimeInSeconds": "86400"}}},
    {"Effect": "Deny", "Action": "sagemaker:CreateTrainingJob", "Resource": "*", "Condition": {"Null": {"sagemaker:VpcSubnets": "true"}}},
    {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:aws:iam::111122223333:role/train-*",
     "Condition": {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}}]})");
  const auto create = [](const char* job, std::vector<std::string> types, const char* seconds,
                         bool subnets = true) {
    test::Values values{{"sagemaker:InstanceTypes", std::move(types)},
                        {"sagemaker:MaxRuntimeInSeconds", {seconds}}};
    if (subnets) values.push_back({"sagemaker:VpcSubnets", {"subnet-1"}});
    return by_user("ana", "sagemaker:CreateTrainingJob",
                   std::string("arn:aws:sagemaker:eu-west-1:111122223333:training-job/") + job,
                   values);
  };
  const std::string role = "arn:aws:iam::111122223333:role/train-small";
  check(policy,
        {
            {"own job", create("ana-1", {"ml.m5.large"}, "3600"), kAllowed},
            {"other name", create("ben-1", {"ml.m5.large"}, "3600"), kImplicit},
            {"a type that is not listed",
             create("ana-1", {"ml.m5.large", "ml.p5.48xlarge"}, "3600"), kExplicit},
            {"too long", create("ana-1", {"ml.g5.xlarge"}, "86401"), kExplicit},
            {"without subnets", create("ana-1", {"ml.g5.xlarge"}, "60", false), kExplicit},
            {"pass the role",
             by_user("ana", "iam:PassRole", role,
                     {{"iam:PassedToService", {"sagemaker.amazonaws.com"}}}),
             kAllowed},
            {"pass it to another service",
             by_user("ana", "iam:PassRole", role, {{"iam:PassedToService", {"ec2.amazonaws.com"}}}),
             kImplicit},
            {"pass another role",
             by_user("ana", "iam:PassRole", "arn:aws:iam::111122223333:role/admin",
                     {{"iam:PassedToService", {"sagemaker.amazonaws.com"}}}),
             kImplicit},
        });
}

TEST(Evaluate, ExampleBucketPolicies) {
  const Owned policy = test::parse(R"({"Version": "2012-10-17", "Id": "data", "Statement": [
    {"Sid": "OnlyTls", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*"],
     "Condition": {"Bool": {"aws:SecureTransport": "false"}}},
    {"Sid": "Public", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/public/*"},
    {"Sid": "Encrypted", "Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::data/*",
     "Condition": {"StringNotEquals": {"s3:x-amz-server-side-encryption": "AES256"}}},
    {"Sid": "Writer", "Effect": "Allow", "Principal": {"AWS": ["arn:aws:iam::111122223333:user/ana"]}, "Action": ["s3:PutObject", "s3:AbortMultipartUpload"],
     "Resource": "arn:aws:s3:::data/in/*"},
    {"Sid": "Until", "Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::111122223333:user/ben"}, "Action": "s3:GetObject", "Resource": "arn:aws:s3:::data/in/*",
     "Condition": {"DateLessThan": {"aws:CurrentTime": "2026-01-01T00:00:00Z"}}}]})",
                                   PolicyKind::resource);
  const auto over_tls = [](Request request, const char* secure = "true") {
    request.values.set("aws:SecureTransport", secure);
    return request;
  };
  const Request anonymous{.action = "s3:GetObject", .resource = "arn:aws:s3:::data/public/a"};
  const Example kExamples[] = {
      {"public, by anyone", over_tls(anonymous), kAllowed},
      {"public, in the clear", over_tls(anonymous, "false"), kExplicit},
      {"encrypted put",
       over_tls(by_user("ana", "s3:PutObject", "arn:aws:s3:::data/in/x",
                        {{"s3:x-amz-server-side-encryption", {"AES256"}}})),
       kAllowed},
      {"put without the header", over_tls(by_user("ana", "s3:PutObject", "arn:aws:s3:::data/in/x")),
       kExplicit},
      {"another writer",
       over_tls(by_user("ben", "s3:PutObject", "arn:aws:s3:::data/in/x",
                        {{"s3:x-amz-server-side-encryption", {"AES256"}}})),
       kImplicit},
      {"another prefix",
       over_tls(by_user("ana", "s3:PutObject", "arn:aws:s3:::data/x",
                        {{"s3:x-amz-server-side-encryption", {"AES256"}}})),
       kImplicit},
      {"before the date",
       over_tls(by_user("ben", "s3:GetObject", "arn:aws:s3:::data/in/x",
                        {{"aws:CurrentTime", {"2025-12-31T23:59:59Z"}}})),
       kAllowed},
      {"after the date",
       over_tls(by_user("ben", "s3:GetObject", "arn:aws:s3:::data/in/x",
                        {{"aws:CurrentTime", {"2026-01-01T00:00:00Z"}}})),
       kImplicit},
  };
  for (const Example& one : kExamples) {
    Policies policies;
    policies.resource = {policy.get()};
    EXPECT_EQ(evaluate(one.request, policies).verdict, one.verdict) << one.says;
  }
}

TEST(Evaluate, ExceptsNotActionAndNotResource) {
  const Owned policy = test::parse(R"({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"},
    {"Effect": "Deny", "Action": "s3:*", "NotResource": ["arn:aws:s3:::data", "arn:aws:s3:::data/*"]}]})");
  check(policy, {
                    {"not IAM", by_user("ana", "logs:PutLogEvents", "*"), kAllowed},
                    {"IAM", by_user("ana", "IAM:CreateUser", "*"), kImplicit},
                    {"the bucket", by_user("ana", "s3:GetObject", "arn:aws:s3:::data/x"), kAllowed},
                    {"another", by_user("ana", "s3:GetObject", "arn:aws:s3:::data2/x"), kExplicit},
                });
}

// A NotResource whose variable has no value: a Deny applies to every resource, an Allow to none.
TEST(Evaluate, TreatsNotResourceWithAMissingVariableStrictly) {
  const Owned deny_others = test::parse(R"({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "*", "Resource": "*"},
    {"Effect": "Deny", "Action": "s3:*", "NotResource": "arn:aws:s3:::data/${aws:PrincipalTag/Team}/*"}]})");
  EXPECT_EQ(verdict(by_user("ana", "s3:GetObject", "arn:aws:s3:::data/x"), deny_others), kExplicit);
  const Owned allow_others = statement(
      R"("Effect":"Allow","Action":"s3:*","NotResource":"arn:aws:s3:::data/${aws:PrincipalTag/Team}/*")");
  EXPECT_EQ(verdict(by_user("ana", "s3:GetObject", "arn:aws:s3:::data/x"), allow_others),
            kImplicit);
  EXPECT_EQ(verdict(by_user("ana", "s3:GetObject", "arn:aws:s3:::data/x",
                            {{"aws:PrincipalTag/Team", {"red"}}}),
                    allow_others),
            kAllowed);
}

TEST(Evaluate, IgnoresVariablesInTheOldVersion) {
  const Owned policy = test::parse(
      R"({"Version": "2008-10-17", "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::data/${aws:username}/*"}})");
  EXPECT_EQ(verdict(by_user("ana", "s3:GetObject", "arn:aws:s3:::data/ana/x"), policy), kImplicit);
  EXPECT_EQ(verdict(by_user("ana", "s3:GetObject", "arn:aws:s3:::data/${aws:username}/x"), policy),
            kAllowed);
}

TEST(Evaluate, MatchesRequestsWithoutAResourceOnlyWithAStar) {
  EXPECT_EQ(verdict(by_user("ana", "s3:ListAllMyBuckets", "*"), allow("s3:*", "*")), kAllowed);
  EXPECT_EQ(verdict(by_user("ana", "s3:ListAllMyBuckets", "*"), allow("s3:*", "arn:aws:s3:::*")),
            kImplicit);
}

}  // namespace
}  // namespace trainyard::policy
