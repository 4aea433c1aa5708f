// Defines the parts of a JobSpec that only queued jobs have: queue, dependencies, retry rules and
// array. They do not change after the job has been created.
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

// A rule of a retry strategy (evaluateOnExit). Its texts are patterns, which may end in '*'; empty
// patterns are ignored.
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

// The end of an attempt, as texts that retry rules match.
struct AttemptEnd {
  std::string status_reason;
  std::string reason;
  std::optional<int> exit_code;
};

// A quantity of a consumable resource. An attempt holds it until the attempt ends; if the resource
// is not replenishable, the quantity is used up.
struct Consumption {
  std::string resource;  // its name, in the job's region
  int64_t quantity = 0;
};

// Limits the attempts of a queued job, and defines after which ends another attempt follows.
struct RetryOptions {
  uint32_t attempts_max = 1;
  std::vector<RetryRule> rules;
};

// Makes a job an array (array.hpp); its children have the same options.
struct ArrayOptions {
  uint32_t size = 0;        // 0: not an array
  bool sequential = false;  // a child depends on the one before it
};

// The queue in which a job waits, its position in it, and the resources that it needs in addition
// to machines.
struct QueueOptions {
  std::string name;         // name of the queue, in the job's region
  std::string share;        // share identifier; "" in queues without fair share
  std::string quota_share;  // name of the quota share; "" in queues without quota shares
  int64_t priority = 0;     // as submitted, among the jobs of its share; higher ones start first
  std::vector<Consumption> consumes;
  std::optional<uint32_t> preemptions_max;  // after this number it fails; unset: no limit
  Json request;  // training jobs: the request to the API of queues, which returns it
};

inline constexpr int64_t kQueuedAttemptsMax = 10;  // limit of attempts of a queued job
inline constexpr int64_t kArraySizeMax = 10'000;   // limit of children of an array

// Returns true if `text` matches `pattern`, ignoring case. A '*' at the end of `pattern` stands for
// any text.
bool matches(std::string_view pattern, std::string_view text);

// Returns true if another attempt follows a failed one. If attempts are left, the first rule whose
// patterns all match decides; if no rule applies, another attempt follows. Requires: the job was
// not cancelled or terminated, and did not time out, because such jobs are never retried.
bool tries_again(const RetryOptions& retry, size_t attempts_made, const AttemptEnd& end);
// Returns true if an interrupted attempt was the last one: if the first rule that applies has a
// status reason and the action EXIT. Otherwise another attempt always follows an interruption.
bool ends_with_interruption(const RetryOptions& retry, const AttemptEnd& end);

// Writes all of these parts as one record: the member "batch" of a spec's record, as in earlier
// versions. Requires: spec.queue is set.
Json queued_json(const JobSpec& spec);
// Reads that record into `spec`. Errors: invalid, with the name of the member.
Result<void> read_queued(const Json& json, JobSpec& spec);

}  // namespace trainyard::domain
