// Tests requests that try to get around a permission or the console's protection.
#include <gtest/gtest.h>

#include "auth/access_table.hpp"
#include "base/text.hpp"
#include "dispatch/testing/tenants.hpp"
#include "shapes/iam.hpp"

namespace trainyard::api {
namespace {

using in_memory::is_denied;
using in_memory::Signing;

TEST(Objects, AreSandboxedInBrowsers) {
  TestTenants tenants;
  const std::string page = "<script>alert(1)</script>";
  ASSERT_EQ(tenants.s3("PUT", "/models/a.html", page, {}, {{"Content-Type", "text/html"}}).status,
            200);
  for (const char* target :
       {"/models/a.html", "/models/a.html?response-content-type=text%2Fhtml", "/models/none"}) {
    const auto reply = tenants.s3("GET", target);
    EXPECT_EQ(reply.headers.get("content-security-policy"), "sandbox") << target;
    EXPECT_EQ(reply.headers.get("x-content-type-options"), "nosniff") << target;
  }
}

TEST(IamRights, ApplyADenyOfAnEntityToItsPoliciesAndMembers) {
  TestTenants tenants;
  policy::User made;
  made.name = "lead", made.id = "AIDAlead";
  made.inline_policies["own"] = document(
      R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:*","Resource":"*"},)"
      R"({"Effect":"Deny","Action":"iam:*","Resource":["arn:aws:iam::*:role/prod-*",)"
      R"("arn:aws:iam::*:group/admins","arn:aws:iam::*:user/lead"]},)"
      R"({"Effect":"Deny","Action":"iam:Attach*","Resource":"*","Condition":{"ArnEquals":)"
      R"({"iam:PolicyARN":"arn:aws:iam::aws:policy/AdministratorAccess"}}}]})");
  tenants.identities->put(made);
  tenants.identities->put(
      policy::AccessKey{.id = "AKIAlead", .user = "lead", .secret = "lead-secret"});
  const Signing lead{{"AKIAlead", "lead-secret", ""}, "eu-west-1"};
  const auto denied = [&](const std::string& request) {
    return is_denied(tenants.form("Version=2010-05-08&Action=" + request, "iam", lead));
  };
  const std::string any = "&PolicyArn=" + percent_encode("arn:aws:iam::aws:policy/PowerUserAccess");
  const std::string administrator =
      "&PolicyArn=" + percent_encode("arn:aws:iam::aws:policy/AdministratorAccess");
  EXPECT_TRUE(denied("AttachRolePolicy&RoleName=prod-train" + any));
  EXPECT_TRUE(denied("DetachUserPolicy&UserName=lead" + any));
  EXPECT_TRUE(denied("AddUserToGroup&GroupName=admins&UserName=friend"));
  EXPECT_TRUE(denied("UpdateGroup&GroupName=team&NewGroupName=admins"));
  EXPECT_TRUE(denied("AttachUserPolicy&UserName=friend" + administrator));
}

template <class Operation, class Input>
std::string iam_resource_of(const Input& input) {
  const Context context{.principal = {.account = "123456789012"}, .region = "eu-west-1"};
  const auto found = AccessTable::shared().find(context, Operation::shape(), &input);
  return found.all.empty() ? "" : found.all.front().resource;
}

TEST(IamRights, ApplyToTheEntityThatChanges) {
  namespace iam = shapes::iam;
  EXPECT_EQ(iam_resource_of<iam::AttachUserPolicy>(iam::AttachUserPolicyRequest{
                .user_name = "friend", .policy_arn = "arn:aws:iam::aws:policy/PowerUserAccess"}),
            "arn:aws:iam::123456789012:user/friend");
  EXPECT_EQ(iam_resource_of<iam::AddUserToGroup>(
                iam::AddUserToGroupRequest{.group_name = "team", .user_name = "friend"}),
            "arn:aws:iam::123456789012:group/team");
  EXPECT_EQ(iam_resource_of<iam::GetPolicy>(
                iam::GetPolicyRequest{.policy_arn = "arn:aws:iam::aws:policy/PowerUserAccess"}),
            "arn:aws:iam::aws:policy/PowerUserAccess");
}

TEST(EventRights, RejectTargetsOfOtherPartitions) {
  TestTenants tenants;
  const Signing mallory = tenants.add_user("mallory", allow(R"("events:*")", R"("*")"));
  const auto events = [&](const std::string& operation, const std::string& body) {
    return tenants.json("AWSEvents." + operation, body, "events", mallory);
  };
  const auto target = [](const std::string& partition) {
    return R"({"Rule":"r","Targets":[{"Id":"1","Arn":"arn:)" + partition +
           R"(:logs:eu-west-1:123456789012:log-group:/aws/events/audit"}]})";
  };
  EXPECT_TRUE(is_denied(events("PutTargets", target("aws"))));
  for (const char* partition : {"x", "aws-cn", ""})
    EXPECT_NE(events("PutTargets", target(partition)).status, 200) << partition;
}

}  // namespace
}  // namespace trainyard::api
