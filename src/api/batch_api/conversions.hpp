// Converts between Batch's shapes and resources: a request becomes a compute environment, a queue, a definition or a job
// specification, and each of these becomes a description.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "batch/catalog.hpp"
#include "domain/array.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "shapes/batch.hpp"

namespace trainyard::api::batch_api {

inline constexpr size_t kDefinitionBytesMax = 24 * 1024;  // as AWS
inline constexpr size_t kSubmitBytesMax = 30 * 1024;      // as AWS
inline constexpr int64_t kPageMaxBatch = 100;  // names or ids in a question, answers in a page, as AWS
inline constexpr std::string_view kDefaultJobRole = "ecsInstanceRole";  // what jobs run as that name no role

// What the model leaves open: 1 to 128 letters, digits, '-' and '_', beginning with a letter or digit.
Outcome<Done> check_batch_name(const std::string& name, std::string_view member);

// 1 to 255 letters and digits; one that may stand for all that begin like it may end with a '*'.
Outcome<Done> check_share_identifier(std::string text, std::string_view member, bool may_be_prefix);
// Into `retry`. Errors: ClientException, for what is no strategy.
Outcome<Done> read_retries(const shapes::batch::RetryStrategy& strategy, domain::RetryOptions& retry);
// [{capacityUnit, maxCapacity}]: at least one, no unit twice.
Outcome<std::vector<trainyard::batch::CapacityLimit>> capacity_limits_of(const Json& words);

// Errors of all four: ClientException, naming member and reason.
Outcome<trainyard::batch::ComputeEnvironment> environment_of(
    const shapes::batch::CreateComputeEnvironmentRequest& request, const std::string& region);
Outcome<trainyard::batch::ComputeEnvironment> environment_of(
    const shapes::batch::UpdateComputeEnvironmentRequest& request,
    trainyard::batch::ComputeEnvironment present);
Outcome<trainyard::batch::JobQueue> queue_of(const shapes::batch::CreateJobQueueRequest& request,
                                             const std::string& region);
Outcome<trainyard::batch::JobQueue> queue_of(const shapes::batch::UpdateJobQueueRequest& request,
                                             trainyard::batch::JobQueue present);
// Kept whole; what of it cannot be run here is refused when a job of it is submitted.
Outcome<trainyard::batch::JobDefinition> definition_of(
    const shapes::batch::RegisterJobDefinitionRequest& request, const std::string& region);

Result<shapes::batch::ComputeEnvironmentDetail> describe(
    const trainyard::batch::ComputeEnvironment& environment, const std::string& account);
Result<shapes::batch::JobQueueDetail> describe(const trainyard::batch::JobQueue& queue,
                                               const std::string& account);
Result<shapes::batch::JobDefinition> describe(const trainyard::batch::JobDefinition& definition,
                                              const std::string& account);

// The job that a request and its definition make. `id` is its id, new.
// Errors: ClientException; among them what cannot be run here, in words.
Outcome<domain::JobSpec> batch_spec_of(const shapes::batch::SubmitJobRequest& request,
                                       const trainyard::batch::JobDefinition& definition,
                                       const std::string& queue, const std::string& region,
                                       const std::string& account, const std::string& id,
                                       const Settings& settings);

// Share, priority within it, and what is consumed: the request's word goes before the definition's.
Outcome<Done> read_place_in_queue(const shapes::batch::SubmitJobRequest& request,
                                  const shapes::batch::JobDefinition& definition,
                                  domain::QueueOptions& queue);
// Nothing when it consumes nothing.
std::optional<shapes::batch::ConsumableResourceProperties> consumption_words(
    const domain::QueueOptions& queue, const std::string& region, const std::string& account);

// "--in Ref::input" with {input: s3://..} -> "--in s3://..". What has no parameter stays as it is.
std::string with_parameters(const std::string& word, const std::map<std::string, std::string>& parameters);

// Requires: job.spec.queue.
Result<void> read_container(const shapes::batch::ContainerProperties& container,
                            shapes::batch::ContainerDetail& detail);
Result<shapes::batch::JobDetail> describe(const domain::Job& job);
shapes::batch::JobSummary summary_of_batch(const domain::Job& job);

// -- arrays (batch_array.cpp)

// arrayProperties and dependsOn of a request, for the job that it makes.
Outcome<Done> read_array(const shapes::batch::SubmitJobRequest& request, domain::JobSpec& spec);
// Adds what only arrays and their children show. `counts`: of an array. Other jobs stay as they are.
void add_array(shapes::batch::JobDetail& detail, const domain::Job& job, const domain::ChildCounts& counts,
               Instant now);
void add_array(shapes::batch::JobSummary& summary, const domain::Job& job, const domain::ChildCounts& counts,
               Instant now);

}  // namespace trainyard::api::batch_api
