#include "policy/policy.hpp"

#include <gtest/gtest.h>

#include "policy/evaluate.hpp"

namespace trainyard::policy {
namespace {

std::shared_ptr<const Policy> parse(std::string_view json, PolicyKind kind = PolicyKind::identity) {
  auto parsed = parse_policy(json, kind);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : nullptr;
}

TEST(Policy, AllowsWhatItNames) {
  const auto policy = parse(R"({"Version": "2012-10-17", "Statement": {"Sid": "Read", "Effect": "Allow",
    "Action": "s3:Get*", "Resource": "arn:aws:s3:::data/${aws:username}/*"}})");
  Request request{.principal_arn = "arn:aws:iam::123456789012:user/ana",
                  .account = "123456789012",
                  .action = "s3:GetObject",
                  .resource = "arn:aws:s3:::data/ana/x.csv"};
  request.values.set("aws:username", "ana");
  Policies policies;
  policies.identity = {policy.get()};
  const Decision decision = evaluate(request, policies);
  EXPECT_EQ(decision.verdict, Verdict::allowed);
  EXPECT_EQ(decision.statement_id, "Read");
  request.resource = "arn:aws:s3:::data/ben/x.csv";
  EXPECT_EQ(evaluate(request, policies).verdict, Verdict::implicitly_denied);
}

}  // namespace
}  // namespace trainyard::policy
