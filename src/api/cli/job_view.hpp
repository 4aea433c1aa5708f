// Reads a job from the API's responses, and formats it as a line of `trainyard jobs` or as the page
// of `trainyard describe`.
//
// Threads: plain values, pure functions. Errors: invalid, for responses without the expected form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {

struct GroupView {
  std::string instance_type;
  int64_t count = 0;
};

// ProgressView is the progress of a host's transfer of a channel, the image or the model.
struct ProgressView {
  std::string host;  // "algo-1"
  std::string what;  // "channel train"
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;  // 0 = unknown
  bool finished = false;
};

// UsageView has the values of a metric for each minute, the oldest first.
struct UsageView {
  std::string metric;  // "CPUUtilization"
  std::vector<double> values;
};

// RankView is a rank, and the times since its last output and its last collective; unset = unknown.
struct RankView {
  int64_t rank = 0;
  std::optional<int64_t> output_seconds, collective_seconds;
};

// FaultView is a rank, or its data loader or link, for which other ranks wait.
struct FaultView {
  std::string fault;  // "StuckRank"
  int64_t rank = 0;
  std::string message;
};

struct HostView {
  std::string name, instance_type, machine, state, failure;
  std::optional<Instant> state_since;
  std::optional<int64_t> exit_code;
  double cpus = 0;
  int64_t memory_bytes = 0, gpus = 0;
  std::vector<UsageView> usage;
  std::optional<int64_t> output_seconds;  // since its last output, while it runs
  std::vector<RankView> ranks;
  std::vector<FaultView> faults;
};

// ArrayView is the progress of the children of an array job of AWS Batch.
struct ArrayView {
  int64_t size = 0, running = 0, succeeded = 0, failed = 0;
};

struct MetricView {
  std::string name;
  double value = 0;  // the last value; for an array, the highest of its children
  std::optional<Instant> at;
  // For arrays: the child with the highest value, and the one with the lowest.
  std::optional<int64_t> child, lowest_child;
  double lowest = 0;
};

// Returns true for the final values of TrainingJobStatus.
inline bool has_ended(std::string_view status) {
  return status == "Completed" || status == "Failed" || status == "Stopped";
}

struct JobView {
  std::string name, arn, status, secondary_status;
  std::string display_name;        // of a Batch job: its name; `name` is its id
  std::string region;              // set in lists of several regions only
  std::optional<ArrayView> array;  // set for arrays
  std::string wait_reason, failure_reason, note, user;
  std::string status_reason;       // of a Batch job: the failed dependency, or why it was cancelled
  std::vector<std::string> notes;  // of settings that have no effect; from DescribeJob only
  std::optional<Instant> created, started, ended;
  std::vector<GroupView> groups;
  int64_t training_seconds = 0, billable_seconds = 0, attempts = 0;
  bool spot = false;
  std::string currency;
  int64_t cost_millionths = 0, on_demand_millionths = 0;
  std::vector<std::string> unpriced;
  std::vector<std::pair<std::string, std::string>> tags;
  std::vector<HostView> hosts;         // from DescribeJob only
  std::vector<ProgressView> progress;  // likewise
  std::vector<MetricView> metrics;     // likewise

  bool of_batch() const { return !display_name.empty() && arn.find(":job/") != std::string::npos; }
  // Returns whether the job is a child of an array.
  bool is_child() const { return of_batch() && name.find(':') != std::string::npos; }
  int64_t hosts_wanted() const;  // the sum over all groups
  // Returns why the job waits, failed or was stopped; "" if no reason is known.
  const std::string& reason() const;
  bool finished() const { return has_ended(status); }
};

// Read a job of DescribeJob's response, and all jobs of ListJobs' response.
Result<JobView> job_view(const Json& json);
Result<std::vector<JobView>> job_views(const Json& answer);

// Formats "12.34 USD", with "?" if a type has no price, and with the savings of spot: "0.30 USD
// (-70%)".
std::string cost_text(const JobView& job);
// Formats "Running 64 of 10000, 120 succeeded, 3 failed", "Pending 200 of 200", or "9 of 10
// succeeded, 1 failed".
std::string array_text(const ArrayView& array);
// Formats "InProgress Training"; for an array the state of its children: "InProgress Running 4 of
// 200".
std::string status_text(const JobView& job);
Paint paint_of_job(const JobView& job);
// Returns the name that its user gave it: "mnist", "digits", and "digits:7" for a child of an
// array.
std::string label_of(const JobView& job);
// Returns the label, and for a Batch job its id: "digits (4b7d..)".
std::string label_with_id(const JobView& job);
// Formats "2 x ml.m5.large + 1 x ml.g5.xlarge".
std::string hosts_text(const JobView& job);
Paint paint_of_status(const std::string& status);
// Shortens ids (UUIDs) to the length at which they still differ, at least 8 characters: "4b7d0f12",
// "4b7d0f12:7" for a child. Returns names unchanged.
std::vector<std::string> short_ids(const std::vector<std::string>& names);

std::string jobs_table(const OutputStyle& style, const std::vector<JobView>& jobs, Instant now);

// Formats the page of a job. `described`: the same job as its service describes it, which is the
// response of DescribeTrainingJob, or an element of Batch's DescribeJobs.
std::string job_page(const OutputStyle& style, const JobView& job, const Json& described,
                     Instant now);

}  // namespace trainyard::cli
