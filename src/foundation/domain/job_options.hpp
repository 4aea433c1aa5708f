// Defines what a queued job has beyond what every job has: its queue, its dependencies, its retry rules, its array.
// A part of JobSpec; nothing of it changes once the job was created.
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

// A rule of a retry strategy (evaluateOnExit). A pattern is text, or text with a '*' at its end; "" is not looked at.
struct RetryRule {
  std::string status_reason;
  std::string reason;
  std::string exit_code;
  bool retry = false;
};

// Why a job was taken back before its time, and by whom.
enum class Withdrawn { no, cancelled, terminated, dependency_failed, queue_deleted };
std::string_view to_string(Withdrawn);
Result<Withdrawn> parse_withdrawn(std::string_view);

// An attempt's end, in the words that the rules see.
struct AttemptEnd {
  std::string status_reason;
  std::string reason;
  std::optional<int> exit_code;
};

// So much of a named consumable resource, held as long as an attempt of the job lasts; what is not
// replenishable is used up by each attempt.
struct Consumption {
  std::string resource;  // name, of the job's region
  int64_t quantity = 0;
};

inline constexpr std::string_view kServiceQueues = "service/";

struct BatchPart {
  // A training job that Batch has queued (a service job): under the training contract, and shown by both faces.
  // Otherwise a plain container.
  bool service = false;
  std::string name;        // as its user calls it; many jobs may have it. The job's key has its id
  std::string queue;       // name, of the job's region
  std::string definition;  // ARN, with its revision
  uint32_t attempts_max = 1;
  std::vector<RetryRule> retry_rules;
  std::vector<std::string> depends_on;        // ids of jobs that must succeed first
  uint32_t array_size = 0;                    // of an array and of each of its children; 0: no array
  bool sequential = false;                    // a child awaits the one before it
  std::vector<std::string> depends_on_alike;  // ids of arrays: a child awaits their child of its index
  // Of a multi-node parallel job: the host whose process decides. The others start when it runs and end when it ends.
  std::optional<uint32_t> main_node;
  std::string share;        // shareIdentifier; "" in queues without fair share
  std::string quota_share;  // name, of its queue; "" in queues without quota shares
  int64_t priority = 0;     // as it was submitted, among the jobs of its share: higher goes first
  std::vector<Consumption> consumes;
  std::optional<uint32_t> preemptions_max;  // then it fails; nothing: it is queued again each time
  Json service_request;                     // of service jobs: what SubmitServiceJob was told

  // As the ledger files it: service jobs apart, since they are training jobs as well. No queue's name has a slash.
  std::string listed_queue() const { return service ? std::string(kServiceQueues) + queue : queue; }

  // "train" of "arn:aws:batch:eu-west-1:123456789012:job-definition/train:3".
  std::string definition_name() const;
};

inline constexpr int64_t kQueuedAttemptsMax = 10;  // of a queued job
inline constexpr int64_t kArraySizeMax = 10'000;   // children of one array

// "*" at the end of `pattern` stands for any rest; letters compare without case.
bool matches(std::string_view pattern, std::string_view text);

// Whether an attempt that failed like that is followed by another one. The first rule whose conditions all hold decides;
// where none does, there is another one, as long as attempts are left.
// Requires: the job was not cancelled or terminated, nor timed out: these are never tried again.
bool tries_again(const BatchPart& batch, size_t attempts_made, const AttemptEnd& end);
// Whether an attempt that was interrupted, which otherwise is always followed by another one, was the last: the rule that
// decides names a status reason and says EXIT.
bool ends_with_interruption(const BatchPart& batch, const AttemptEnd& end);

Json to_json(const BatchPart&);
Result<BatchPart> batch_part_from_json(const Json&);

}  // namespace trainyard::domain
