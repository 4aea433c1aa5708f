#include "policy/managed.hpp"

#include <vector>

#include "base/check.hpp"

namespace trainyard::policy {
namespace {

constexpr std::string_view kArnPrefix = "arn:aws:iam::aws:policy/";

struct Source {
  std::string_view name, description, document;
};

// In the order of their names.
constexpr Source kSources[] = {
    {"AWSBatchFullAccess", "All of Batch, and what its console and clients also read.", R"({
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "Batch",
      "Effect": "Allow",
      "Action": ["batch:*", "cloudwatch:GetMetricStatistics", "cloudwatch:ListMetrics", "logs:Describe*", "logs:Get*",
                 "logs:FilterLogEvents", "iam:GetRole", "iam:ListRoles"],
      "Resource": "*"
    },
    {
      "Sid": "PassJobRoles",
      "Effect": "Allow",
      "Action": "iam:PassRole",
      "Resource": ["arn:aws:iam::*:role/AWSBatchServiceRole", "arn:aws:iam::*:role/service-role/AWSBatchServiceRole",
                   "arn:aws:iam::*:role/ecsTaskExecutionRole", "arn:aws:iam::*:role/AWSBatchJobRole*"]
    }
  ]
})"},
    {"AdministratorAccess", "Everything.", R"({
  "Version": "2012-10-17",
  "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
})"},
    {"AmazonS3FullAccess", "All buckets and objects.", R"({
  "Version": "2012-10-17",
  "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]
})"},
    {"AmazonS3ReadOnlyAccess", "Reads and lists all buckets and objects.", R"({
  "Version": "2012-10-17",
  "Statement": [{"Effect": "Allow", "Action": ["s3:Get*", "s3:List*", "s3:Describe*"], "Resource": "*"}]
})"},
    {"AmazonSageMakerFullAccess",
     "All of SageMaker, its logs and metrics, and buckets with sagemaker in their names.", R"({
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "SageMaker",
      "Effect": "Allow",
      "Action": "sagemaker:*",
      "Resource": "*"
    },
    {
      "Sid": "Observe",
      "Effect": "Allow",
      "Action": ["cloudwatch:GetMetricStatistics", "cloudwatch:GetMetricData", "cloudwatch:ListMetrics",
                 "cloudwatch:PutMetricData", "logs:CreateLogGroup", "logs:CreateLogStream", "logs:Describe*", "logs:FilterLogEvents",
                 "logs:Get*", "logs:PutLogEvents", "servicequotas:Get*", "servicequotas:List*",
                 "fsx:DescribeFileSystems"],
      "Resource": "*"
    },
    {
      "Sid": "Roles",
      "Effect": "Allow",
      "Action": ["iam:GetRole", "iam:ListRoles"],
      "Resource": "*"
    },
    {
      "Sid": "PassRoleToSageMaker",
      "Effect": "Allow",
      "Action": "iam:PassRole",
      "Resource": "arn:aws:iam::*:role/*AmazonSageMaker*",
      "Condition": {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    },
    {
      "Sid": "Buckets",
      "Effect": "Allow",
      "Action": ["s3:ListAllMyBuckets", "s3:GetBucketLocation", "s3:CreateBucket", "s3:ListBucket"],
      "Resource": "*"
    },
    {
      "Sid": "Objects",
      "Effect": "Allow",
      "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
      "Resource": ["arn:aws:s3:::*SageMaker*", "arn:aws:s3:::*Sagemaker*", "arn:aws:s3:::*sagemaker*"]
    },
    {
      "Sid": "TaggedObjects",
      "Effect": "Allow",
      "Action": "s3:GetObject",
      "Resource": "*",
      "Condition": {"StringEqualsIgnoreCase": {"s3:ExistingObjectTag/SageMaker": "true"}}
    }
  ]
})"},
    {"CloudWatchFullAccess", "All metrics and logs.", R"({
  "Version": "2012-10-17",
  "Statement": [
    {"Effect": "Allow", "Action": ["cloudwatch:*", "logs:*", "iam:GetPolicy", "iam:GetPolicyVersion", "iam:GetRole"], "Resource": "*"}
  ]
})"},
    {"CloudWatchLogsFullAccess", "All logs.", R"({
  "Version": "2012-10-17",
  "Statement": [{"Effect": "Allow", "Action": ["logs:*", "cloudwatch:GenerateQuery"], "Resource": "*"}]
})"},
    {"AmazonFSxFullAccess", "All file systems.", R"({
  "Version": "2012-10-17",
  "Statement": [{"Effect": "Allow", "Action": "fsx:*", "Resource": "*"}]
})"},
    {"AmazonFSxReadOnlyAccess", "Reads file systems, and changes none.", R"({
  "Version": "2012-10-17",
  "Statement": [{"Effect": "Allow", "Action": ["fsx:Describe*", "fsx:ListTagsForResource"], "Resource": "*"}]
})"},
    {"IAMReadOnlyAccess", "Reads users, groups, roles and policies, and simulates them.", R"({
  "Version": "2012-10-17",
  "Statement": [
    {"Effect": "Allow", "Action": ["iam:GenerateCredentialReport", "iam:GenerateServiceLastAccessedDetails", "iam:Get*", "iam:List*", "iam:Simulate*"], "Resource": "*"}
  ]
})"},
    {"PowerUserAccess", "Everything but users, groups, roles and policies.", R"({
  "Version": "2012-10-17",
  "Statement": [
    {"Effect": "Allow", "NotAction": ["iam:*", "organizations:*", "account:*"], "Resource": "*"},
    {"Effect": "Allow", "Action": ["iam:ListRoles", "account:GetAccountInformation", "account:ListRegions", "organizations:DescribeOrganization"],
     "Resource": "*"}
  ]
})"},
    {"ReadOnlyAccess", "Reads everything and changes nothing.", R"({
  "Version": "2012-10-17",
  "Statement": [
    {
      "Effect": "Allow",
      "Action": [
        "batch:Describe*", "batch:Get*", "batch:List*",
        "cloudtrail:Describe*", "cloudtrail:Get*", "cloudtrail:List*", "cloudtrail:LookupEvents",
        "cloudwatch:Describe*", "cloudwatch:Get*", "cloudwatch:List*",
        "fsx:Describe*", "fsx:List*",
        "iam:Get*", "iam:List*", "iam:Simulate*",
        "logs:Describe*", "logs:FilterLogEvents", "logs:Get*", "logs:List*",
        "s3:Get*", "s3:List*",
        "sagemaker:BatchDescribe*", "sagemaker:BatchGet*", "sagemaker:Describe*", "sagemaker:Get*", "sagemaker:List*", "sagemaker:Search",
        "servicequotas:Get*", "servicequotas:List*",
        "sts:GetAccessKeyInfo", "sts:GetCallerIdentity", "sts:GetSessionToken",
        "trainyard:Describe*", "trainyard:Get*", "trainyard:List*"
      ],
      "Resource": "*"
    }
  ]
})"},
};

std::vector<ManagedPolicy> parse_all() {
  std::vector<ManagedPolicy> all;
  for (const Source& source : kSources) {
    auto parsed = parse_policy(source.document, PolicyKind::identity);
    CHECK(parsed, "a built-in policy parses");
    all.push_back({source.name, source.description, source.document, std::move(*parsed)});
  }
  return all;
}

}  // namespace

std::string ManagedPolicy::arn() const { return std::string(kArnPrefix).append(name); }

std::span<const ManagedPolicy> managed_policies() {
  static const std::vector<ManagedPolicy> kAll = parse_all();
  return kAll;
}

const ManagedPolicy* find_managed_policy(std::string_view arn) {
  if (!arn.starts_with(kArnPrefix)) return nullptr;
  for (const ManagedPolicy& one : managed_policies())
    if (one.name == arn.substr(kArnPrefix.size())) return &one;
  return nullptr;
}

}  // namespace trainyard::policy
