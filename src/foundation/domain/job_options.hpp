// Defines what a queued job has beyond what every job has: its queue, its dependencies, its retry rules, its array.
// Parts of JobSpec; nothing of them changes once the job was created.
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

// A rule of a retry strategy (evaluateOnExit). A pattern is text, or text with a '*' at its end; "" is not looked at.
struct RetryRule {
  std::string status_reason;
  std::string reason;
  std::string exit_code;
  bool retry = false;
};

// Why a job was stopped before its end, and by which operation.
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

// Limits the attempts of a queued job, and says which ends are followed by another attempt.
struct RetryOptions {
  uint32_t attempts_max = 1;
  std::vector<RetryRule> rules;
};

// Makes a job an array (array.hpp); its children have the same options.
struct ArrayOptions {
  uint32_t size = 0;        // 0: no array
  bool sequential = false;  // a child awaits the one before it
};

// Names the queue in which a job waits, its place in it, and what it needs besides machines.
struct QueueOptions {
  std::string name;         // of the queue, of the job's region
  std::string share;        // "" in queues without fair share
  std::string quota_share;  // name, of its queue; "" in queues without quota shares
  int64_t priority = 0;     // as it was submitted, among the jobs of its share: higher goes first
  std::vector<Consumption> consumes;
  std::optional<uint32_t> preemptions_max;  // then it fails; nothing: it is queued again each time
  Json request;  // of training jobs: what the queue's front end was told, for it to echo
};

inline constexpr int64_t kQueuedAttemptsMax = 10;  // of a queued job
inline constexpr int64_t kArraySizeMax = 10'000;   // children of one array

// "*" at the end of `pattern` stands for any rest; letters compare without case.
bool matches(std::string_view pattern, std::string_view text);

// Whether an attempt that failed like that is followed by another one. The first rule whose conditions all hold decides;
// where none does, there is another one, as long as attempts are left.
// Requires: the job was not cancelled or terminated, nor timed out: these are never tried again.
bool tries_again(const RetryOptions& retry, size_t attempts_made, const AttemptEnd& end);
// Whether an attempt that was interrupted, which otherwise is always followed by another one, was the last: the rule that
// decides names a status reason and says EXIT.
bool ends_with_interruption(const RetryOptions& retry, const AttemptEnd& end);

// Writes the record of all of these: the member "batch" of a spec's record, as earlier versions wrote it.
// Requires: spec.queue.
Json queued_json(const JobSpec& spec);
// Reads it into `spec`. Errors: invalid, naming the member.
Result<void> read_queued(const Json& json, JobSpec& spec);

}  // namespace trainyard::domain
