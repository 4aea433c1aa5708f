// Defines the parts of a JobSpec that only queued jobs have: queue, dependencies, retry rules,
// array. They do not change after the job was created.
//
// Threads: plain values; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::domain {

struct JobSpec;

// A rule of a retry strategy (evaluateOnExit). A pattern is text that may end in '*'; an empty
// pattern is ignored.
struct RetryRule {
  std::string status_reason;
  std::string reason;
  std::string exit_code;
  bool retry = false;
};

// The operation that stopped a job before its end.
enum class Cancellation { no, cancelled, terminated, dependency_failed, queue_deleted };
std::string_view to_string(Cancellation);
Result<Cancellation> parse_cancellation(std::string_view);

// An attempt's end, in the texts that retry rules match.
struct AttemptEnd {
  std::string status_reason;
  std::string reason;
  std::optional<int> exit_code;
};

// A quantity of a consumable resource. An attempt holds it until it ends; if the resource is not
// replenishable, the attempt uses it up.
struct Consumption {
  std::string resource;  // its name, in the job's region
  int64_t quantity = 0;
};

// Limits the attempts of a queued job, and decides which ends are followed by another attempt.
struct RetryOptions {
  uint32_t attempts_max = 1;
  std::vector<RetryRule> rules;
};

// Makes a job an array (array.hpp); its children have the same options.
struct ArrayOptions {
  uint32_t size = 0;        // 0: not an array
  bool sequential = false;  // a child depends on the one before it
};

// Names the queue in which a job waits, its position there, and the resources that it needs in
// addition to machines.
struct QueueOptions {
  std::string name;         // of the queue, in the job's region
  std::string share;        // "" in queues without fair share
  std::string quota_share;  // its name in the queue; "" in queues without quota shares
  int64_t priority = 0;     // as submitted, among the jobs of its share: higher goes first
  std::vector<Consumption> consumes;
  std::optional<uint32_t> preemptions_max;  // after them it fails; unset: no limit
  Json request;  // of training jobs: the request to the queue's API, which returns it
};

inline constexpr int64_t kQueuedAttemptsMax = 10;  // of a queued job
inline constexpr int64_t kArraySizeMax = 10'000;   // children of one array

// True if `text` matches `pattern`, ignoring case. A '*' at the end of `pattern` stands for any
// rest.
bool matches(std::string_view pattern, std::string_view text);

// Decides whether another attempt follows one that failed. If attempts are left, the first rule
// whose conditions all hold decides; if no rule applies, another attempt follows.
// Requires: the job was not cancelled or terminated, and did not time out: such jobs are never
// tried again.
bool tries_again(const RetryOptions& retry, size_t attempts_made, const AttemptEnd& end);
// Decides whether an interrupted attempt was the last one: the first rule that applies has a status
// reason and the action EXIT. Otherwise another attempt always follows an interruption.
bool ends_with_interruption(const RetryOptions& retry, const AttemptEnd& end);

// Writes all of these as one record: the member "batch" of a spec's record, as in earlier versions.
// Requires: spec.queue.
Json queued_json(const JobSpec& spec);
// Reads that record into `spec`. Errors: invalid, naming the member.
Result<void> read_queued(const Json& json, JobSpec& spec);

}  // namespace trainyard::domain
