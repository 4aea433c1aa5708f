#include "shapes/iam.hpp"

#include "auth/temporary_keys.hpp"
#include "base/text.hpp"
#include "iam/operations.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/sts.hpp"

namespace trainyard::api::iam {
namespace {

namespace iam = shapes::iam;
namespace sts = shapes::sts;

TEST(Roles, ExistForEveryName) {
  OperationsWorld world{add_operations};
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

using Strings = std::vector<std::string>;

constexpr const char* kReadOne =
    R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::b/ann/*"}]})";

std::string decision(OperationsWorld& world, const std::string& arn, const std::string& action,
                     const std::string& resource) {
  auto answer = world.call<iam::SimulatePrincipalPolicy>({.policy_source_arn = arn,
                                                          .action_names = Strings{action},
                                                          .resource_arns = Strings{resource}});
  return answer ? *answer->evaluation_results->front().eval_decision : "refused";
}

TEST(Roles, MayBeUsedByJobsIfUndefined) {
  OperationsWorld world{add_operations};
  const std::string arn = "arn:aws:iam::123456789012:role/service-role/Train";
  EXPECT_EQ(decision(world, arn, "s3:PutObject", "arn:aws:s3:::bucket/*"), "allowed");
  EXPECT_EQ(decision(world, arn, "iam:CreateUser", "*"), "implicitDeny");
  EXPECT_TRUE(world.call<iam::ListAttachedRolePolicies>({.role_name = "Train"})
                  ->attached_policies->empty());
  EXPECT_TRUE(world.call<iam::ListRolePolicies>({.role_name = "Train"})->policy_names->empty());
  EXPECT_EQ(world.refusal<iam::PutRolePolicy>(
                {.role_name = "Train", .policy_name = "p", .policy_document = kReadOne}),
            "NoSuchEntity: The role with name Train cannot be found.");
}

TEST(Roles, OfTheExampleAccountBelongToThisAccount) {
  OperationsWorld world{add_operations};
  const std::string trust = policy::built_in_trust("123456789012");
  ASSERT_TRUE(
      world.call<iam::CreateRole>({.role_name = "Train", .assume_role_policy_document = trust}));
  ASSERT_TRUE(world.call<iam::PutRolePolicy>(
      {.role_name = "Train", .policy_name = "p", .policy_document = kReadOne}));
  for (const std::string account : {"123456789012", "999988887777"}) {
    const std::string role = "arn:aws:iam::" + account + ":role/";
    EXPECT_EQ(decision(world, role + "Train", "s3:GetObject", "arn:aws:s3:::b/ann/x"), "allowed");
    EXPECT_EQ(decision(world, role + "Train", "s3:GetObject", "arn:aws:s3:::b/bob/x"),
              "implicitDeny");
    EXPECT_EQ(decision(world, role + "undefined", "s3:PutObject", "arn:aws:s3:::b/x"), "allowed");
  }
  EXPECT_EQ(world.refusal<iam::SimulatePrincipalPolicy>(
                {.policy_source_arn = "arn:aws:iam::999988887777:user/ann",
                 .action_names = Strings{"s3:GetObject"}}),
            "NoSuchEntity: The entity arn:aws:iam::999988887777:user/ann cannot be found. The "
            "account of this server is 123456789012.");
}

TEST(Roles, HaveTheRightsOfTheirPoliciesIfDefined) {
  OperationsWorld world{add_operations};
  const std::string trust = policy::built_in_trust("123456789012");
  auto made =
      world.call<iam::CreateRole>({.role_name = "Train", .assume_role_policy_document = trust});
  ASSERT_TRUE(made);
  const std::string arn = *made->role->arn;
  EXPECT_EQ(decision(world, arn, "s3:GetObject", "arn:aws:s3:::b/ann/x"), "implicitDeny");
  ASSERT_TRUE(world.call<iam::PutRolePolicy>(
      {.role_name = "Train", .policy_name = "p", .policy_document = kReadOne}));
  EXPECT_EQ(decision(world, arn, "s3:GetObject", "arn:aws:s3:::b/ann/x"), "allowed");
  EXPECT_EQ(decision(world, arn, "s3:GetObject", "arn:aws:s3:::b/bob/x"), "implicitDeny");
  EXPECT_TRUE(
      world.refusal<iam::DeleteRole>({.role_name = "Train"}).starts_with("DeleteConflict: "));
  EXPECT_TRUE(
      world.refusal<iam::CreateRole>({.role_name = "train", .assume_role_policy_document = trust})
          .starts_with("EntityAlreadyExists: "))
      << "names differ by more than case";
}

TEST(InstanceProfiles, HaveOneRoleAndPreventItsDeletion) {
  OperationsWorld world{add_operations};
  const std::string trust = policy::built_in_trust("123456789012");
  for (const char* role : {"Train", "Other"})
    ASSERT_TRUE(
        world.call<iam::CreateRole>({.role_name = role, .assume_role_policy_document = trust}));
  auto made = world.call<iam::CreateInstanceProfile>(
      {.instance_profile_name = "p", .path = "/lab/", .tags = {{{.key = "a", .value = "b"}}}});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->instance_profile->arn, "arn:aws:iam::123456789012:instance-profile/lab/p");
  EXPECT_TRUE(made->instance_profile->instance_profile_id->starts_with("AIPA"));
  EXPECT_TRUE(made->instance_profile->roles->empty());
  EXPECT_EQ(world.refusal<iam::CreateInstanceProfile>({.instance_profile_name = "P"}),
            "EntityAlreadyExists: Instance Profile P already exists.");
  ASSERT_TRUE(world.call<iam::AddRoleToInstanceProfile>(
      {.instance_profile_name = "p", .role_name = "Train"}));
  EXPECT_EQ(world.refusal<iam::AddRoleToInstanceProfile>(
                {.instance_profile_name = "p", .role_name = "Other"}),
            "LimitExceeded: Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1");
  const std::string in_use =
      "DeleteConflict: Cannot delete entity, must remove roles from instance profile first.";
  EXPECT_EQ(world.refusal<iam::DeleteRole>({.role_name = "Train"}), in_use);
  EXPECT_EQ(world.refusal<iam::DeleteInstanceProfile>({.instance_profile_name = "p"}), in_use);
  auto found = world.call<iam::GetInstanceProfile>({.instance_profile_name = "p"});
  EXPECT_EQ(found->instance_profile->roles->at(0).role_name, "Train");
  EXPECT_EQ(found->instance_profile->tags->at(0).key, "a");
  EXPECT_EQ(world.refusal<iam::RemoveRoleFromInstanceProfile>(
                {.instance_profile_name = "p", .role_name = "Other"}),
            "NoSuchEntity: The role with name Other cannot be found.");
  ASSERT_TRUE(world.call<iam::RemoveRoleFromInstanceProfile>(
      {.instance_profile_name = "p", .role_name = "Train"}));
  ASSERT_TRUE(world.call<iam::DeleteInstanceProfile>({.instance_profile_name = "p"}));
  ASSERT_TRUE(world.call<iam::DeleteRole>({.role_name = "Train"}));
  EXPECT_EQ(world.refusal<iam::GetInstanceProfile>({.instance_profile_name = "p"}),
            "NoSuchEntity: Instance Profile p cannot be found.");
}

TEST(InstanceProfiles, AreListedInPages) {
  OperationsWorld world{add_operations};
  const std::string trust = policy::built_in_trust("123456789012");
  ASSERT_TRUE(
      world.call<iam::CreateRole>({.role_name = "Train", .assume_role_policy_document = trust}));
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(world.call<iam::CreateInstanceProfile>(
        {.instance_profile_name = name, .path = *name == 'c' ? "/lab/" : "/"}));
    ASSERT_TRUE(world.call<iam::AddRoleToInstanceProfile>(
        {.instance_profile_name = name, .role_name = "Train"}));
  }
  auto page = world.call<iam::ListInstanceProfiles>({.max_items = 2});
  ASSERT_EQ(page->instance_profiles->size(), 2u);
  EXPECT_EQ(page->is_truncated, true);
  page = world.call<iam::ListInstanceProfiles>({.marker = page->marker, .max_items = 2});
  ASSERT_EQ(page->instance_profiles->size(), 1u);
  EXPECT_EQ(page->is_truncated, false);
  EXPECT_EQ(page->instance_profiles->at(0).instance_profile_name, "c");
  EXPECT_EQ(
      world.call<iam::ListInstanceProfiles>({.path_prefix = "/lab/"})->instance_profiles->size(),
      1u);
  EXPECT_EQ(world.call<iam::ListInstanceProfilesForRole>({.role_name = "Train"})
                ->instance_profiles->size(),
            3u);
  EXPECT_EQ(
      world.call<iam::ListInstanceProfilesForRole>({.role_name = "No"})->instance_profiles->size(),
      0u);
  EXPECT_EQ(world.refusal<iam::AddRoleToInstanceProfile>(
                {.instance_profile_name = "a", .role_name = "No"}),
            "NoSuchEntity: The role with name No cannot be found.");
}

TEST(InstanceProfiles, HaveTags) {
  OperationsWorld world{add_operations};
  ASSERT_TRUE(world.call<iam::CreateInstanceProfile>({.instance_profile_name = "p"}));
  ASSERT_TRUE(world.call<iam::TagInstanceProfile>(
      {.instance_profile_name = "p",
       .tags = {{{.key = "team", .value = "a"}, {.key = "Other", .value = "b"}}}}));
  ASSERT_TRUE(world.call<iam::UntagInstanceProfile>(
      {.instance_profile_name = "p", .tag_keys = Strings{"TEAM"}}));
  auto tags = world.call<iam::ListInstanceProfileTags>({.instance_profile_name = "p"});
  ASSERT_EQ(tags->tags->size(), 1u);
  EXPECT_EQ(tags->tags->at(0).key, "Other");
}

TEST(Simulations, RejectInvalidRequests) {
  OperationsWorld world{add_operations};
  const auto refusal = [&](const std::string& arn, Strings policies = {}) {
    return world.refusal<iam::SimulatePrincipalPolicy>({.policy_source_arn = arn,
                                                        .policy_input_list = std::move(policies),
                                                        .action_names = Strings{"s3:GetObject"}});
  };
  EXPECT_TRUE(refusal("arn:aws:iam::999999999999:user/ann").starts_with("NoSuchEntity: "));
  EXPECT_TRUE(refusal("arn:aws:iam::123456789012:user/ann").starts_with("NoSuchEntity: "));
  EXPECT_TRUE(refusal("arn:aws:iam::123456789012:role/").starts_with("InvalidInput: "));
  EXPECT_TRUE(
      refusal("arn:aws:iam::123456789012:role/Train", {"{}"}).starts_with("InvalidInput: "));
  EXPECT_TRUE(world
                  .refusal<iam::SimulatePrincipalPolicy>(
                      {.policy_source_arn = "arn:aws:iam::123456789012:role/Train",
                       .action_names = Strings(200, "s3:GetObject"),
                       .resource_arns = Strings(200, "*")})
                  .starts_with("InvalidInput: One request"));
}

TEST(Simulations, EvaluateCustomPolicies) {
  OperationsWorld world{add_operations};
  auto answer = world.call<iam::SimulateCustomPolicy>(
      {.policy_input_list = Strings{kReadOne},
       .action_names = Strings{"s3:GetObject"},
       .resource_arns = Strings{"arn:aws:s3:::b/ann/x", "*"}});
  ASSERT_TRUE(answer);
  const auto& result = answer->evaluation_results->front();
  EXPECT_EQ(*result.eval_decision, "implicitDeny") << "the strictest of all resources";
  EXPECT_EQ(*result.resource_specific_results->at(0).eval_resource_decision, "allowed");
  EXPECT_EQ(*result.resource_specific_results->at(1).eval_resource_decision, "implicitDeny");
}

TEST(Users, HaveAtMostTwoKeysWithSealedSecrets) {
  OperationsWorld world{add_operations};
  ASSERT_TRUE(world.call<iam::CreateUser>({.user_name = "ann"}));
  auto first = world.call<iam::CreateAccessKey>({.user_name = "ann"});
  ASSERT_TRUE(first);
  ASSERT_TRUE(world.call<iam::CreateAccessKey>({.user_name = "ann"}));
  EXPECT_EQ(world.refusal<iam::CreateAccessKey>({.user_name = "ann"}),
            "LimitExceeded: Cannot exceed quota for AccessKeysPerUser: 2");
  const auto& key = *first->access_key;
  const policy::AccessKey* kept = world.store.snapshot()->find_key(*key.access_key_id);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->secret, *key.secret_access_key);
  for (const auto& [name, record] : world.control.records()->all)
    EXPECT_EQ(dump(record->document).find(*key.secret_access_key), std::string::npos)
        << name.second;
  ASSERT_TRUE(world.call<iam::UpdateAccessKey>(
      {.user_name = "ann", .access_key_id = key.access_key_id, .status = "Inactive"}));
  EXPECT_FALSE(world.store.snapshot()->find_key(*key.access_key_id)->active);
  EXPECT_TRUE(world.refusal<iam::DeleteUser>({.user_name = "ann"}).starts_with("DeleteConflict: "));
  EXPECT_TRUE(
      world.refusal<iam::DeleteAccessKey>({.user_name = "bob", .access_key_id = key.access_key_id})
          .starts_with("NoSuchEntity: "))
      << "a key is its user's";
  ASSERT_TRUE(
      world.call<iam::DeleteAccessKey>({.user_name = "ann", .access_key_id = key.access_key_id}));
  EXPECT_FALSE(world.store.snapshot()->find_key(*key.access_key_id));
}

TEST(Users, StoreTheLastUsesOfTheirKeys) {
  OperationsWorld world{add_operations};
  ASSERT_TRUE(world.call<iam::CreateUser>({.user_name = "ann"}));
  const std::string id =
      *world.call<iam::CreateAccessKey>({.user_name = "ann"})->access_key->access_key_id;
  EXPECT_EQ(*world.call<iam::GetAccessKeyLastUsed>({.access_key_id = id})
                 ->access_key_last_used->service_name,
            "N/A");
  world.store.key_used(id, world.clock.now(), "eu-west-1", "s3");
  ASSERT_TRUE(world.store.write_uses());
  IdentityStore later(world.control, std::string(32, 'k'),
                      *policy::identities_of("123456789012", {}), world.random);
  EXPECT_EQ(later.last_use(id)->service, "s3");
}

TEST(Users, AreReadOnlyIfConfigured) {
  OperationsWorld world{add_operations};
  policy::IdentitySeed seed;
  seed.keys = {{"AKIAOWNER", "s", "owner"}, {"AKIAANN", "s", "ann"}};
  seed.users = {{.name = "ann", .policies = {"AmazonS3ReadOnlyAccess"}}};
  world.store.set_configured(*policy::identities_of("123456789012", seed));
  EXPECT_TRUE(world.store.snapshot()->find_key("AKIAOWNER")->owner);
  EXPECT_FALSE(world.store.snapshot()->find_key("AKIAANN")->owner);
  EXPECT_EQ(
      decision(world, "arn:aws:iam::123456789012:user/ann", "s3:GetObject", "arn:aws:s3:::b/k"),
      "allowed");
  const std::string refusal = world.refusal<iam::PutUserPolicy>(
      {.user_name = "ann", .policy_name = "p", .policy_document = kReadOne});
  EXPECT_TRUE(refusal.starts_with("UnmodifiableEntity: ")) << refusal;
  EXPECT_NE(refusal.find("configuration file"), std::string::npos);
  EXPECT_TRUE(world.refusal<iam::DeleteAccessKey>({.user_name = "ann", .access_key_id = "AKIAANN"})
                  .starts_with("UnmodifiableEntity: "));
  EXPECT_TRUE(policy::seed_warnings(*world.store.snapshot()).empty());
  seed.users.clear();
  world.store.set_configured(*policy::identities_of("123456789012", seed));
  EXPECT_EQ(policy::seed_warnings(*world.store.snapshot()).size(), 1u)
      << "ann's key may do nothing";
  seed.keys.pop_back();
  world.store.set_configured(*policy::identities_of("123456789012", seed));
  EXPECT_FALSE(world.store.snapshot()->find_key("AKIAANN"));
}

TEST(Policies, HaveFiveVersions) {
  OperationsWorld world{add_operations};
  auto made = world.call<iam::CreatePolicy>({.policy_name = "team", .policy_document = kReadOne});
  ASSERT_TRUE(made);
  const std::string arn = *made->policy->arn;
  EXPECT_EQ(arn, "arn:aws:iam::123456789012:policy/team");
  for (int version = 2; version <= 5; ++version)
    ASSERT_TRUE(
        world.call<iam::CreatePolicyVersion>({.policy_arn = arn, .policy_document = kReadOne}));
  EXPECT_TRUE(
      world.refusal<iam::CreatePolicyVersion>({.policy_arn = arn, .policy_document = kReadOne})
          .starts_with("LimitExceeded: "));
  EXPECT_TRUE(world.refusal<iam::DeletePolicyVersion>({.policy_arn = arn, .version_id = "v1"})
                  .starts_with("DeleteConflict: "));
  ASSERT_TRUE(world.call<iam::SetDefaultPolicyVersion>({.policy_arn = arn, .version_id = "v3"}));
  ASSERT_TRUE(world.call<iam::DeletePolicyVersion>({.policy_arn = arn, .version_id = "v1"}));
  EXPECT_EQ(*world.call<iam::GetPolicy>({.policy_arn = arn})->policy->default_version_id, "v3");
  EXPECT_TRUE(
      world.refusal<iam::GetPolicyVersion>({.policy_arn = arn, .version_id = "v99999999999"})
          .starts_with("NoSuchEntity: "));
  ASSERT_TRUE(world.call<iam::CreateUser>({.user_name = "ann"}));
  ASSERT_TRUE(world.call<iam::AttachUserPolicy>({.user_name = "ann", .policy_arn = arn}));
  EXPECT_TRUE(
      world.refusal<iam::DeletePolicy>({.policy_arn = arn}).starts_with("DeleteConflict: "));
  EXPECT_EQ(
      *world.call<iam::ListEntitiesForPolicy>({.policy_arn = arn})->policy_users->front().user_name,
      "ann");
  EXPECT_TRUE(world
                  .refusal<iam::CreatePolicyVersion>(
                      {.policy_arn = "arn:aws:iam::aws:policy/AdministratorAccess",
                       .policy_document = kReadOne})
                  .starts_with("UnmodifiableEntity: "));
}

TEST(Policies, RejectInvalidAndTooLargeDocuments) {
  OperationsWorld world{add_operations};
  ASSERT_TRUE(world.call<iam::CreateUser>({.user_name = "ann"}));
  for (
      const std::string& document : Strings{
          "{", "[]", "{}", R"({"Version":"2012-10-17"})",
          R"({"Version":"2012-10-17","Statement":[{"Effect":"Permit","Action":"*","Resource":"*"}]})",
          R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]})",
          R"({"Version":"2012-10-17","Statement":[{"Effect":"Deny","Effect":"Allow","Action":"*","Resource":"*"}]})",
          std::string(100'000, '[')})
    EXPECT_TRUE(world
                    .refusal<iam::PutUserPolicy>(
                        {.user_name = "ann", .policy_name = "p", .policy_document = document})
                    .starts_with("MalformedPolicyDocument: "))
        << document.substr(0, 100);
  std::string large = kReadOne;
  large.insert(large.find("ann/"), std::string(3'000, 'x'));
  EXPECT_TRUE(world
                  .refusal<iam::PutUserPolicy>(
                      {.user_name = "ann", .policy_name = "p", .policy_document = large})
                  .starts_with("LimitExceeded: Maximum policy size of 2048 bytes"));
}

TEST(Groups, GiveTheirPoliciesToTheirMembers) {
  OperationsWorld world{add_operations};
  ASSERT_TRUE(world.call<iam::CreateUser>({.user_name = "ann"}));
  ASSERT_TRUE(world.call<iam::CreateGroup>({.group_name = "team"}));
  ASSERT_TRUE(world.call<iam::PutGroupPolicy>(
      {.group_name = "team", .policy_name = "p", .policy_document = kReadOne}));
  const std::string ann = "arn:aws:iam::123456789012:user/ann";
  EXPECT_EQ(decision(world, ann, "s3:GetObject", "arn:aws:s3:::b/ann/x"), "implicitDeny");
  ASSERT_TRUE(world.call<iam::AddUserToGroup>({.group_name = "team", .user_name = "ann"}));
  EXPECT_EQ(decision(world, ann, "s3:GetObject", "arn:aws:s3:::b/ann/x"), "allowed");
  ASSERT_TRUE(world.call<iam::UpdateGroup>({.group_name = "team", .new_group_name = "crew"}));
  EXPECT_EQ(decision(world, ann, "s3:GetObject", "arn:aws:s3:::b/ann/x"), "allowed")
      << "members follow";
  EXPECT_EQ(*world.call<iam::ListGroupsForUser>({.user_name = "ann"})->groups->front().group_name,
            "crew");
  EXPECT_TRUE(
      world.refusal<iam::DeleteGroup>({.group_name = "crew"}).starts_with("DeleteConflict: "));
}

TEST(Boundaries, LimitTheRightsOfPolicies) {
  OperationsWorld world{add_operations};
  ASSERT_TRUE(world.call<iam::CreateUser>(
      {.user_name = "ann",
       .permissions_boundary = "arn:aws:iam::aws:policy/CloudWatchLogsFullAccess"}));
  ASSERT_TRUE(world.call<iam::AttachUserPolicy>(
      {.user_name = "ann", .policy_arn = "arn:aws:iam::aws:policy/AdministratorAccess"}));
  const std::string ann = "arn:aws:iam::123456789012:user/ann";
  EXPECT_EQ(decision(world, ann, "s3:GetObject", "arn:aws:s3:::b/k"), "implicitDeny");
  ASSERT_TRUE(world.call<iam::DeleteUserPermissionsBoundary>({.user_name = "ann"}));
  EXPECT_EQ(decision(world, ann, "s3:GetObject", "arn:aws:s3:::b/k"), "allowed");
}

TEST(Pages, ContinueAtTheMarker) {
  OperationsWorld world{add_operations};
  for (const char* name : {"c", "a", "b"})
    ASSERT_TRUE(world.call<iam::CreateUser>({.user_name = name}));
  auto first = world.call<iam::ListUsers>({.max_items = 2});
  ASSERT_EQ(first->users->size(), 2u);
  EXPECT_TRUE(*first->is_truncated);
  auto second = world.call<iam::ListUsers>({.marker = first->marker, .max_items = 2});
  ASSERT_EQ(second->users->size(), 1u);
  EXPECT_EQ(*second->users->front().user_name, "c");
  EXPECT_FALSE(*second->is_truncated);
}

TEST(Sessions, AreOfTheRequestedRole) {
  OperationsWorld world{add_operations};
  world.settings.temporary_key_secret = std::string(32, 's');
  const std::string arn = "arn:aws:iam::123456789012:role/path/Train";
  auto session = world.call<sts::AssumeRole>(
      {.role_arn = arn, .role_session_name = "me", .duration_seconds = 900});
  ASSERT_TRUE(session);
  EXPECT_EQ(*session->assumed_role_user->arn, "arn:aws:sts::123456789012:assumed-role/Train/me");
  const auto& keys = *session->credentials;
  EXPECT_EQ(*keys.expiration, world.clock.now() + 900s);
  const auto resolved = resolve_keys(world.settings.temporary_key_secret, *keys.access_key_id,
                                     *keys.session_token, world.clock.now() + 899s);
  EXPECT_EQ(resolved.state, ResolvedKeys::State::valid);
  EXPECT_EQ(resolved.session.role_arn, arn);
  EXPECT_EQ(resolved.secret_access_key, *keys.secret_access_key);

  EXPECT_TRUE(world
                  .refusal<sts::AssumeRole>({.role_arn = "arn:aws:iam::999999999999:role/Train",
                                             .role_session_name = "me"})
                  .starts_with("AccessDenied: "));
  EXPECT_TRUE(world
                  .refusal<sts::AssumeRole>(
                      {.role_arn = "arn:aws:iam::123456789012:user/ann", .role_session_name = "me"})
                  .starts_with("InvalidParameterValue: "));
  EXPECT_TRUE(
      world.refusal<sts::AssumeRole>({.role_arn = arn, .role_session_name = "me", .policy = "{}"})
          .starts_with("MalformedPolicyDocument: "));
}

}  // namespace
}  // namespace trainyard::api::iam
