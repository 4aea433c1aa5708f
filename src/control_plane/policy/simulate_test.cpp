#include "policy/simulate.hpp"

#include <gtest/gtest.h>

namespace trainyard::policy {
namespace {

std::shared_ptr<const Policy> parse(std::string_view json) {
  auto parsed = parse_policy(json, PolicyKind::identity);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : nullptr;
}

constexpr std::string_view kTwoStatements = R"({
  "Id": "a \"quoted\" {name}",
  "Statement": [
    {"Sid": "Read", "Effect": "Allow", "Action": "s3:Get*", "Resource": "*"},
    {"Sid": "Never", "Effect": "Deny", "Action": "s3:GetObject", "Resource": "*",
     "Condition": {"StringEquals": {"aws:PrincipalTag/Team": "red", "s3:prefix": "${aws:username}"}}}
  ],
  "Version": "2012-10-17"
})";

TEST(Simulate, ReportsPositionsOfStatements) {
  const auto spans = statement_spans(kTwoStatements);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].begin, (TextPosition{4, 5}));
  EXPECT_EQ(spans[0].end, (TextPosition{4, 77}));
  EXPECT_EQ(spans[1].begin, (TextPosition{5, 5}));
  EXPECT_EQ(spans[1].end, (TextPosition{6, 102}));
  const auto alone =
      statement_spans(R"({"Version":"2012-10-17","\u0053tatement":{"Effect":"Allow"}})");
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].begin, (TextPosition{1, 42}));
}

TEST(Simulate, NamesTheDenyingStatementsOfADenial) {
  const auto policy = parse(kTwoStatements);
  Request request{.principal_arn = "arn:aws:iam::123456789012:user/ana",
                  .account = "123456789012",
                  .action = "s3:GetObject",
                  .resource = "arn:aws:s3:::data/x"};
  request.values.set("aws:username", "ana");
  SimulatedPolicies policies;
  policies.identity = {{"readers", "user-managed", policy.get()}};
  Simulation simulation = simulate(request, policies);
  EXPECT_EQ(decision_name(simulation.decision.verdict), "allowed");
  ASSERT_EQ(simulation.matched.size(), 1u);
  EXPECT_EQ(simulation.matched[0].statement_id, "Read");
  EXPECT_EQ(simulation.matched[0].policy_id, "readers");
  EXPECT_EQ(simulation.missing_keys,
            (std::vector<std::string>{"aws:PrincipalTag/Team", "s3:prefix"}));
  EXPECT_FALSE(simulation.allowed_by_boundary.has_value());

  request.values.set("aws:principaltag/team", "red");
  request.values.set("s3:prefix", "ana");
  simulation = simulate(request, policies);
  EXPECT_EQ(decision_name(simulation.decision.verdict), "explicitDeny");
  ASSERT_EQ(simulation.matched.size(), 1u);
  EXPECT_EQ(simulation.matched[0].statement_id, "Never");
  EXPECT_TRUE(simulation.missing_keys.empty());
}

TEST(Simulate, ReportsTheDecisionOfTheBoundary) {
  const auto all = parse(R"({"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}})");
  const auto logs =
      parse(R"({"Statement": {"Effect": "Allow", "Action": "logs:*", "Resource": "*"}})");
  Request request{.principal_arn = "arn:aws:iam::123456789012:user/ana",
                  .account = "123456789012",
                  .action = "s3:GetObject",
                  .resource = "arn:aws:s3:::data/x"};
  SimulatedPolicies policies;
  policies.identity = {{"all", "aws-managed", all.get()}};
  policies.boundary = {{"logs", "user-managed", logs.get()}};
  const Simulation simulation = simulate(request, policies);
  EXPECT_EQ(decision_name(simulation.decision.verdict), "implicitDeny");
  EXPECT_EQ(simulation.allowed_by_boundary, false);
  request.action = "logs:PutLogEvents";
  EXPECT_EQ(simulate(request, policies).allowed_by_boundary, true);
}

}  // namespace
}  // namespace trainyard::policy
