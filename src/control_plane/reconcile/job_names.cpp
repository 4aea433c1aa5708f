// Makes the names of jobs, their log groups and their log streams.
#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/limits.hpp"
#include "contract/aws_texts.hpp"
#include "reconcile/state.hpp"

namespace trainyard::reconcile {

using namespace batch;
using namespace domain;

std::string job_title(const Job& job) {
  if (job.spec.contract == Contract::plain)
    return "job/" + job.spec.display_name + " (" + job.key.name + ")";
  return "training-job/" + job.key.name;
}

std::string planning_failed(const std::string& fault) {
  return std::string(contract::kInternalServerError) + "planning failed: " + fault;
}

Duration stop_grace_of(const Job& job, Duration usual) {
  return job.spec.contract == Contract::plain
             ? std::min<Duration>(usual, std::chrono::seconds(kStopGraceSeconds))
             : usual;
}

std::string_view log_group_of(const Job& job, HostIndex host) {
  if (job.spec.contract == Contract::training) return kLogGroup;
  const std::string& own = job.spec.group(host).container_options.log_group;
  return own.empty() ? batch::kLogGroup : std::string_view(own);
}

namespace {

constexpr size_t kIdDigits = 32;  // hex digits in the id of an ECS task, as on AWS

std::string digits_of(const std::string& whole) {
  return to_hex(bytes_of(sha256(whole))).substr(0, kIdDigits);
}

// Returns digits that are unique to this host of this attempt, and always the same.
std::string task_of(const Job& job, const Attempt& attempt, HostIndex host) {
  return digits_of(job.key.region + "/" + job.key.name + "/" + std::to_string(attempt.number) +
                   "/" + std::to_string(host));
}

}  // namespace

std::string task_arn(const Job& job, const Attempt& attempt, HostIndex host) {
  return batch::ecs_arn(job.account, job.key.region, batch::kTaskArn, attempt.environment,
                        task_of(job, attempt, host));
}

std::string container_instance_arn(const Job& job, const Attempt& attempt, HostIndex host) {
  // The record of an earlier attempt has only the machine of its last host.
  const std::string& machine =
      host < attempt.hosts.size() ? attempt.hosts[host].machine : attempt.machine;
  return batch::ecs_arn(job.account, job.key.region, batch::kContainerInstanceArn,
                        attempt.environment, digits_of(machine));
}

std::string log_stream_of(const Job& job, const Attempt& attempt, HostIndex host) {
  if (job.spec.contract == Contract::plain) {
    const std::string& prefix = job.spec.group(host).container_options.log_prefix;
    return shorten(prefix.empty() ? batch::definition_name(job.spec.definition) : prefix,
                   kDefinitionInStreamMax) +
           "/default/" + task_of(job, attempt, host);
  }
  int64_t second = 0;
  for (const Attempt& each : job.attempts) {
    second = std::max(second + 1, to_milliseconds(each.started) / 1000);
    if (each.number == attempt.number) break;
  }
  return job.key.name + "/" + host_name(host) + "-" + std::to_string(second);
}

}  // namespace trainyard::reconcile
