// How jobs, their logs and their streams are called.
#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "control/state.hpp"

namespace trainyard::control {

using namespace domain;

std::string job_title(const Job& job) {
  if (job.spec.plain()) return "job/" + job.spec.batch->name + " (" + job.key.name + ")";
  return "training-job/" + job.key.name;
}

Duration stop_grace_of(const Job& job, Duration usual) {
  return job.spec.plain() ? std::min<Duration>(usual, std::chrono::seconds(kBatchStopGraceSeconds)) : usual;
}

std::string_view log_group_of(const Job& job, HostIndex host) {
  if (!job.spec.plain()) return kLogGroup;
  const std::string& own = job.spec.group(host).fittings.log_group;
  return own.empty() ? kBatchLogGroup : std::string_view(own);
}

std::string log_stream_of(const Job& job, const Attempt& attempt, HostIndex host) {
  if (job.spec.plain()) {
    // Nobody but this attempt's host has it, and it is always the same.
    const std::string whole = job.key.region + "/" + job.key.name + "/" + std::to_string(attempt.number) +
                              "/" + std::to_string(host);
    const std::string& prefix = job.spec.group(host).fittings.log_prefix;
    return shorten(prefix.empty() ? job.spec.batch->definition_name() : prefix, kDefinitionInStreamMax) +
           "/default/" + to_hex(bytes_of(sha256(whole))).substr(0, 32);
  }
  int64_t second = 0;
  for (const Attempt& each : job.attempts) {
    second = std::max(second + 1, to_milliseconds(each.started) / 1000);
    if (each.number == attempt.number) break;
  }
  return job.key.name + "/" + host_name(host) + "-" + std::to_string(second);
}

}  // namespace trainyard::control
