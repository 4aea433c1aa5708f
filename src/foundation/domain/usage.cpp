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

Usage decayed(const Usage& usage, Duration decay, Instant now) {
  CHECK(decay > Duration{}, "the decay time is positive");
  const double left = std::exp(-seconds(now - usage.at) / seconds(decay));
  return {usage.cpu_seconds * left, std::max(usage.at, now), usage.cpus * left};
}

double used_since(double cpus, Instant since, Duration decay, Instant now) {
  CHECK(decay > Duration{}, "the decay time is positive");
  // The integral of the decayed usage over the time from `since` to `now`.
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
  // Ends of attempts may be reported out of order, so both usages are decayed to the later instant.
  const Instant end = after.control_time(*ended->ended);
  const Instant at = present ? std::max(present->at, end) : end;
  const double cpus = cpus_of(*ended);
  Usage sum =
      decayed({used_since(cpus, ended->started, decay, *ended->ended), end, cpus}, decay, at);
  if (!present) return sum;
  const Usage before_it = decayed(*present, decay, at);
  sum.cpu_seconds += before_it.cpu_seconds;
  sum.cpus += before_it.cpus;
  return sum;
}

bool is_negligible(const Usage& usage, Duration decay, Instant now) {
  return decayed(usage, decay, now).cpu_seconds < kNothingCpuSeconds;
}

}  // namespace trainyard::domain
