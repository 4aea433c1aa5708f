#include "domain/usage.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace trainyard::domain {
namespace {

constexpr double kNothingCpuSeconds = 1e-3;

double seconds(Duration duration) {
  return std::max(0.0, std::chrono::duration<double>(duration).count());
}

}  // namespace

Usage faded(const Usage& usage, Duration decay, Instant now) {
  CHECK(decay > Duration{}, "a line's decay time is more than nothing");
  const double left = std::exp(-seconds(now - usage.at) / seconds(decay));
  return {usage.cpu_seconds * left, std::max(usage.at, now), usage.cpus * left};
}

double used_since(double cpus, Instant since, Duration decay, Instant now) {
  CHECK(decay > Duration{}, "a line's decay time is more than nothing");
  // The integral over the decayed usage of each moment.
  return cpus * seconds(decay) * -std::expm1(-seconds(now - since) / seconds(decay));
}

std::optional<ShareKey> share_of(const Job& job) {
  if (!job.spec.queue) return ShareKey{{}, job.spec.principal};
  if (job.spec.queue->share.empty()) return std::nullopt;
  return ShareKey{{job.key.region, job.spec.queue->name}, job.spec.queue->share};
}

double cpus_of(const Attempt& attempt) {
  double cpus = 0;
  for (const Host& host : attempt.hosts) cpus += host.share.cpus;
  return cpus;
}

std::optional<Usage> usage_after(const std::optional<Usage>& present, const Job* before,
                                 const Job& after, Duration decay) {
  const Attempt* ended = after.attempt();
  if (!ended || ended->state != AttemptState::ended) return std::nullopt;
  const Attempt* was = before ? before->attempt() : nullptr;
  if (!was || was->number != ended->number || was->state == AttemptState::ended)
    return std::nullopt;
  // Agents may report the ends of a share's attempts out of order, so the sum is for the later
  // instant.
  const Instant end = after.control_time(*ended->ended);
  const Instant at = present ? std::max(present->at, end) : end;
  const double cpus = cpus_of(*ended);
  Usage sum = faded({used_since(cpus, ended->started, decay, *ended->ended), end, cpus}, decay, at);
  if (!present) return sum;
  const Usage before_it = faded(*present, decay, at);
  sum.cpu_seconds += before_it.cpu_seconds;
  sum.cpus += before_it.cpus;
  return sum;
}

bool is_nothing(const Usage& usage, Duration decay, Instant now) {
  return faded(usage, decay, now).cpu_seconds < kNothingCpuSeconds;
}

}  // namespace trainyard::domain
