// Formats and parses the ARNs of AWS Batch's resources and jobs, and of the ECS tasks that run
// them.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::batch {

std::string arn_of(const std::string& account, const std::string& region, std::string_view kind,
                   const std::string& name);
// Returns the part of an ARN after "KIND/", or `text` itself if it is not an ARN of that kind.
std::string_view name_in_arn(std::string_view text, std::string_view kind);
inline constexpr std::string_view kEnvironmentArn = "compute-environment";
inline constexpr std::string_view kQueueArn = "job-queue";
inline constexpr std::string_view kDefinitionArn = "job-definition";
inline constexpr std::string_view kJobArn = "job";
inline constexpr std::string_view kServiceJobArn = "service-job";
inline constexpr std::string_view kPolicyArn = "scheduling-policy";
inline constexpr std::string_view kServiceEnvironmentArn = "service-environment";
inline constexpr std::string_view kQuotaShareArn = "quota-share";  // for names "QUEUE/SHARE"
inline constexpr std::string_view kResourceArn = "consumable-resource";

// Returns the ARN that ECS would assign. `cluster` is the name of the compute environment, which is
// a cluster for ECS.
std::string ecs_arn(const std::string& account, const std::string& region, std::string_view kind,
                    const std::string& cluster, const std::string& id);
inline constexpr std::string_view kTaskArn = "task";
inline constexpr std::string_view kContainerInstanceArn = "container-instance";

// The log group of jobs that request no other.
inline constexpr std::string_view kLogGroup = "/aws/batch/job";

// Returns "train" for "arn:aws:batch:eu-west-1:123456789012:job-definition/train:3".
std::string definition_name(std::string_view arn);

}  // namespace trainyard::batch
