#include "api/shapes/iam.hpp"

#include "api/auth/temporary_keys.hpp"
#include "api/operations/test_world.hpp"
#include "api/shapes/sts.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

namespace iam = shapes::iam;
namespace sts = shapes::sts;

TEST(Roles, EveryNameIsARoleThatSageMakerMayTakeUp) {
  OperationsWorld world;
  auto found = world.call<iam::GetRole>({.role_name = "Train"});
  ASSERT_TRUE(found);
  EXPECT_EQ(*found->role->arn, "arn:aws:iam::123456789012:role/Train");
  EXPECT_TRUE(found->role->role_id->starts_with("AROA"));
  const auto trust = parse_json(*percent_decode(*found->role->assume_role_policy_document));
  ASSERT_TRUE(trust);
  const Json& statement = trust->at("Statement").at(0);
  EXPECT_EQ(statement.at("Action"), "sts:AssumeRole");
  EXPECT_EQ(statement.at("Principal").at("Service").at(0), "sagemaker.amazonaws.com");
}

TEST(Roles, WhatARoleMayDoIsSimulated) {
  OperationsWorld world;
  auto answer = world.call<iam::SimulatePrincipalPolicy>(
      {.policy_source_arn = "arn:aws:iam::123456789012:role/service-role/Train",
       .action_names = std::vector<std::string>{"s3:PutObject", "ecr:GetAuthorizationToken"},
       .resource_arns = std::vector<std::string>{"arn:aws:s3:::bucket/*"}});
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->evaluation_results->size(), 2u);
  const auto& first = answer->evaluation_results->front();
  EXPECT_EQ(*first.eval_action_name, "s3:PutObject");
  EXPECT_EQ(*first.eval_decision, "allowed");
  EXPECT_EQ(*first.resource_specific_results->front().eval_resource_name, "arn:aws:s3:::bucket/*");
  EXPECT_FALSE(*answer->is_truncated);
}

TEST(Roles, WhatCannotBeSimulatedIsSaid) {
  OperationsWorld world;
  const auto refusal = [&](const std::string& arn, std::vector<std::string> policies = {}) {
    return world.refusal<iam::SimulatePrincipalPolicy>(
        {.policy_source_arn = arn,
         .policy_input_list = std::move(policies),
         .action_names = std::vector<std::string>{"s3:GetObject"}});
  };
  EXPECT_EQ(refusal("arn:aws:iam::999999999999:role/Train"),
            "NoSuchEntity: The role with name Train cannot be found.");
  EXPECT_TRUE(refusal("arn:aws:iam::123456789012:user/ann").starts_with("InvalidInput: "));
  EXPECT_TRUE(refusal("arn:aws:iam::123456789012:role/").starts_with("InvalidInput: "));
  EXPECT_TRUE(refusal("arn:aws:iam::123456789012:role/Train", {"{}"}).starts_with("InvalidInput: Policies"));
  std::vector<std::string> actions(200, "s3:GetObject"), resources(200, "*");
  EXPECT_TRUE(
      world
          .refusal<iam::SimulatePrincipalPolicy>({.policy_source_arn = "arn:aws:iam::123456789012:role/Train",
                                                  .action_names = actions,
                                                  .resource_arns = resources})
          .starts_with("InvalidInput: One request"));
}

TEST(Roles, HaveOneAttachedPolicyAndNoneOfTheirOwn) {
  OperationsWorld world;
  EXPECT_EQ(*world.call<iam::ListAttachedRolePolicies>({.role_name = "Train"})
                 ->attached_policies->front()
                 .policy_name,
            "AdministratorAccess");
  EXPECT_TRUE(world.call<iam::ListRolePolicies>({.role_name = "Train"})->policy_names->empty());
}

TEST(Sessions, AreOfTheRoleThatWasAskedFor) {
  OperationsWorld world;
  world.settings.temporary_key_secret = std::string(32, 's');
  const std::string arn = "arn:aws:iam::123456789012:role/path/Train";
  auto session =
      world.call<sts::AssumeRole>({.role_arn = arn, .role_session_name = "me", .duration_seconds = 900});
  ASSERT_TRUE(session);
  EXPECT_EQ(*session->assumed_role_user->arn, "arn:aws:sts::123456789012:assumed-role/Train/me");
  const auto& keys = *session->credentials;
  EXPECT_EQ(*keys.expiration, world.clock.at + 900s);
  const auto resolved = resolve_keys(world.settings.temporary_key_secret, *keys.access_key_id,
                                     *keys.session_token, world.clock.at + 899s);
  EXPECT_EQ(resolved.state, ResolvedKeys::State::good);
  EXPECT_EQ(resolved.session.role_arn, arn);
  EXPECT_EQ(resolved.secret_access_key, *keys.secret_access_key);

  EXPECT_TRUE(world
                  .refusal<sts::AssumeRole>(
                      {.role_arn = "arn:aws:iam::999999999999:role/Train", .role_session_name = "me"})
                  .starts_with("AccessDenied: "));
  EXPECT_TRUE(world
                  .refusal<sts::AssumeRole>(
                      {.role_arn = "arn:aws:iam::123456789012:user/ann", .role_session_name = "me"})
                  .starts_with("InvalidParameterValue: "));
  EXPECT_TRUE(world.refusal<sts::AssumeRole>({.role_arn = arn, .role_session_name = "me", .policy = "{}"})
                  .starts_with("MalformedPolicyDocument: "));
}

}  // namespace
}  // namespace trainyard::api
