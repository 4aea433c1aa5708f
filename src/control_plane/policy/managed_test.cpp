#include "policy/managed.hpp"

#include <gtest/gtest.h>

#include "policy/evaluate.hpp"

namespace trainyard::policy {
namespace {

bool allows(std::string_view name, std::string action, std::string resource) {
  const ManagedPolicy* managed =
      find_managed_policy("arn:aws:iam::aws:policy/" + std::string(name));
  if (!managed) return ADD_FAILURE() << "unknown policy " << name, false;
  const Request request{.principal_arn = "arn:aws:iam::123456789012:user/ana",
                        .account = "123456789012",
                        .action = std::move(action),
                        .resource = std::move(resource)};
  Policies policies;
  policies.identity = {managed->policy.get()};
  return evaluate(request, policies).verdict == Verdict::allowed;
}

TEST(ManagedPolicies, ParseAndAreFoundByTheirArn) {
  for (const std::string_view name :
       {"AdministratorAccess", "PowerUserAccess", "ReadOnlyAccess", "AmazonSageMakerFullAccess",
        "AmazonS3FullAccess", "AmazonS3ReadOnlyAccess", "AWSBatchFullAccess",
        "CloudWatchLogsFullAccess", "CloudWatchFullAccess", "IAMReadOnlyAccess",
        "AmazonFSxFullAccess", "AmazonFSxReadOnlyAccess"}) {
    const ManagedPolicy* found =
        find_managed_policy("arn:aws:iam::aws:policy/" + std::string(name));
    ASSERT_NE(found, nullptr) << name;
    EXPECT_TRUE(parse_policy(found->document, PolicyKind::identity)) << name;
    EXPECT_LE(policy_size(found->document), kManagedPolicyBytesMax) << name;
    EXPECT_EQ(found->arn(), "arn:aws:iam::aws:policy/" + std::string(name));
  }
  EXPECT_EQ(managed_policies().size(), 12u);
  EXPECT_EQ(find_managed_policy("arn:aws:iam::aws:policy/Unknown"), nullptr);
  EXPECT_EQ(find_managed_policy("arn:aws:iam::123456789012:policy/AdministratorAccess"), nullptr);
}

TEST(ManagedPolicies, AllowOnlyActionsThatTheirNamesImply) {
  const std::string object = "arn:aws:s3:::data/x", role = "arn:aws:iam::123456789012:role/r";
  EXPECT_TRUE(allows("AdministratorAccess", "iam:CreateUser", "*"));
  EXPECT_TRUE(allows("PowerUserAccess", "sagemaker:CreateTrainingJob", "*"));
  EXPECT_FALSE(allows("PowerUserAccess", "iam:CreateUser", "*"));
  EXPECT_FALSE(allows("PowerUserAccess", "iam:PassRole", role));
  EXPECT_TRUE(allows("ReadOnlyAccess", "s3:GetObject", object));
  EXPECT_FALSE(allows("ReadOnlyAccess", "s3:PutObject", object));
  EXPECT_FALSE(allows("ReadOnlyAccess", "sagemaker:CreateTrainingJob", "*"));
  EXPECT_FALSE(allows("ReadOnlyAccess", "sts:AssumeRole", role));
  EXPECT_FALSE(allows("AmazonS3ReadOnlyAccess", "s3:DeleteObject", object));
  EXPECT_TRUE(allows("AmazonSageMakerFullAccess", "s3:PutObject",
                     "arn:aws:s3:::sagemaker-eu-west-1-123456789012/x"));
  EXPECT_FALSE(allows("AmazonSageMakerFullAccess", "s3:PutObject", object));
  EXPECT_FALSE(allows("AmazonSageMakerFullAccess", "iam:PassRole", role))
      << "allowed only for SageMaker, and for matching names";
  EXPECT_TRUE(allows("AmazonSageMakerFullAccess", "fsx:DescribeFileSystems", "*"));
  EXPECT_TRUE(allows("AmazonFSxFullAccess", "fsx:DeleteFileSystem", "*"));
  EXPECT_FALSE(allows("AmazonFSxReadOnlyAccess", "fsx:DeleteFileSystem", "*"));
  EXPECT_FALSE(allows("IAMReadOnlyAccess", "iam:CreateAccessKey", "*"));
}

}  // namespace
}  // namespace trainyard::policy
