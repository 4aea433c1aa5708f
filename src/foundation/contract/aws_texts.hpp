// Defines AWS's names and texts that are stored or that programs of training jobs see: ARNs, log
// group, metric namespace, status messages, the prefixes of failure reasons, and ARNs of rules.
// Users and their tools match them, so they must equal AWS's exactly. All other texts of AWS are in
// api, batch and policy.
//
// Threads: constants and pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::contract {

std::string training_job_arn(const std::string& account, const std::string& region,
                             const std::string& name);
// Returns the ARN of a rule of the default event bus. With the name "", it is the prefix of the
// ARNs of all rules of a region.
std::string event_rule_arn(const std::string& account, const std::string& region,
                           const std::string& name);

inline constexpr std::string_view kLogsArnStart = "arn:aws:logs:";
inline constexpr std::string_view kBucketArnStart = "arn:aws:s3:::";

inline constexpr std::string_view kTrainingLogGroup = "/aws/sagemaker/TrainingJobs";
inline constexpr std::string_view kTrainingMetricNamespace = "/aws/sagemaker/TrainingJobs";
// the dimension whose value is the job's name
inline constexpr const char* kTrainingJobDimension = "TrainingJobName";

// -- prefixes of FailureReason, by the cause
inline constexpr std::string_view kAlgorithmError = "AlgorithmError: ";            // the script
inline constexpr std::string_view kClientError = "ClientError: ";                  // the request
inline constexpr std::string_view kInternalServerError = "InternalServerError: ";  // the platform

// -- titles of failures in script mode, as in SageMaker's toolkit
inline constexpr const char* kUserScriptError = "ExecuteUserScriptError";
inline constexpr const char* kInstallModuleError = "InstallModuleError";
inline constexpr const char* kInstallRequirementsError = "InstallRequirementsError";
inline constexpr std::string_view kFrameworkError = "Framework Error: ";

// -- status messages
inline constexpr std::string_view kStartingTheJob = "Starting the training job.";
inline constexpr std::string_view kPreparing = "Preparing the instances for training.";
inline constexpr std::string_view kDownloading = "Downloading input data";
inline constexpr std::string_view kTraining =
    "Training image download completed. Training in progress.";
inline constexpr std::string_view kUploading = "Uploading generated training model";
inline constexpr std::string_view kStopping = "Stopping the training job";
inline constexpr std::string_view kStopped = "Training job stopped";
inline constexpr std::string_view kCompleted = "Training job completed";
inline constexpr std::string_view kMaxRuntimeExceeded =
    "Training job runtime exceeded MaxRuntimeInSeconds provided";
inline constexpr std::string_view kMaxWaitExceeded =
    "Training job did not complete within MaxWaitTimeInSeconds provided";
inline constexpr std::string_view kMaxPendingExceeded =
    "Training job stopped: it did not start within MaxPendingTimeInSeconds provided";
inline constexpr std::string_view kReplacing = "Launched instance was unhealthy, replacing it!";

}  // namespace trainyard::contract
