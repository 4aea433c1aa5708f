// Converts Batch's requests to compute environments, queues, definitions and job specifications,
// and these to descriptions.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batch/catalog.hpp"
#include "domain/array.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "shapes/batch.hpp"

namespace trainyard::api::batch_api {

inline constexpr size_t kDefinitionBytesMax = 24 * 1024;  // as on AWS
inline constexpr size_t kSubmitBytesMax = 30 * 1024;      // as on AWS
// The maximum of names or ids in a request, and of items in a page; as on AWS.
inline constexpr int64_t kPageMaxBatch = 100;
inline constexpr std::string_view kDefaultJobRole = "ecsInstanceRole";  // of jobs that name no role

// Checks a name, which the model does not constrain: 1 to 128 letters, digits, '-' and '_',
// beginning with a letter or digit.
Outcome<Done> check_batch_name(const std::string& name, std::string_view member);

// Checks a share identifier: 1 to 255 letters and digits. With `may_be_prefix` it may end with '*',
// for all that begin with it.
Outcome<Done> check_share_identifier(std::string text, std::string_view member, bool may_be_prefix);
// Sets `retry` to the strategy. Errors: ClientException (an invalid strategy).
Outcome<Done> read_retries(const shapes::batch::RetryStrategy& strategy,
                           domain::RetryOptions& retry);
// Reads [{capacityUnit, maxCapacity}]: at least one, with unique units.
Outcome<std::vector<trainyard::batch::CapacityLimit>> capacity_limits_of(const Json& json);

// Convert requests to resources. Errors: ClientException, naming member and reason.
Outcome<trainyard::batch::ComputeEnvironment> environment_of(
    const shapes::batch::CreateComputeEnvironmentRequest& request, const std::string& region);
Outcome<trainyard::batch::ComputeEnvironment> environment_of(
    const shapes::batch::UpdateComputeEnvironmentRequest& request,
    trainyard::batch::ComputeEnvironment present);
Outcome<trainyard::batch::JobQueue> queue_of(const shapes::batch::CreateJobQueueRequest& request,
                                             const std::string& region);
Outcome<trainyard::batch::JobQueue> queue_of(const shapes::batch::UpdateJobQueueRequest& request,
                                             trainyard::batch::JobQueue present);
// Keeps the whole definition, unsupported properties included: they are rejected when a job is
// submitted.
Outcome<trainyard::batch::JobDefinition> definition_of(
    const shapes::batch::RegisterJobDefinitionRequest& request, const std::string& region);

Result<shapes::batch::ComputeEnvironmentDetail> describe(
    const trainyard::batch::ComputeEnvironment& environment, const std::string& account);
Result<shapes::batch::JobQueueDetail> describe(const trainyard::batch::JobQueue& queue,
                                               const std::string& account);
Result<shapes::batch::JobDefinition> describe(const trainyard::batch::JobDefinition& definition,
                                              const std::string& account);

// Makes the specification of a submitted job. `id`: the id of the new job.
// Errors: ClientException, also for unsupported properties.
Outcome<domain::JobSpec> batch_spec_of(const shapes::batch::SubmitJobRequest& request,
                                       const trainyard::batch::JobDefinition& definition,
                                       const std::string& queue, const std::string& region,
                                       const std::string& account, const std::string& id,
                                       const Settings& settings);

// Reads a job's share, its priority in the share, and the resources that it consumes. The request
// overrides the definition.
Outcome<Done> read_queue_position(const shapes::batch::SubmitJobRequest& request,
                                  const shapes::batch::JobDefinition& definition,
                                  domain::QueueOptions& queue);
// Returns nothing if the job consumes no resources.
std::optional<shapes::batch::ConsumableResourceProperties> describe_consumption(
    const domain::QueueOptions& queue, const std::string& region, const std::string& account);

// Returns the text for an optional member of a response; nothing if it is empty.
inline std::optional<std::string> unless_empty(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

// Replaces references to parameters: "--in Ref::input" with {input: s3://..} becomes "--in
// s3://..". References to unknown parameters stay.
std::string with_parameters(const std::string& word,
                            const std::map<std::string, std::string>& parameters);

// Requires: job.spec.queue.
Result<void> read_container(const shapes::batch::ContainerProperties& container,
                            shapes::batch::ContainerDetail& detail);
Result<shapes::batch::JobDetail> describe(const domain::Job& job);
shapes::batch::JobSummary summary_of_batch(const domain::Job& job);

// -- arrays (array.cpp)

// Reads arrayProperties and dependsOn of a request into `spec`.
Outcome<Done> read_array(const shapes::batch::SubmitJobRequest& request, domain::JobSpec& spec);
// Adds the properties of an array or of a child; does nothing for other jobs. `counts`: the
// children of the array.
void add_array(shapes::batch::JobDetail& detail, const domain::Job& job,
               const domain::ChildCounts& counts, Instant now);
void add_array(shapes::batch::JobSummary& summary, const domain::Job& job,
               const domain::ChildCounts& counts, Instant now);

}  // namespace trainyard::api::batch_api
