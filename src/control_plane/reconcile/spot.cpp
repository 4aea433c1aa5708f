#include "reconcile/spot.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "base/text.hpp"
#include "domain/limits.hpp"

namespace trainyard::reconcile {
namespace {

using namespace domain;

constexpr uint64_t kMilliseconds = 3'600'000;          // in an hour
constexpr uint64_t kUniformSteps = uint64_t{1} << 53;  // as fine as a double

// Returns true if the job runs on spot machines and is not ending.
bool may_be_taken(const Job& job) {
  const Attempt* attempt = job.attempt();
  return job.state == JobState::active && job.stop_cause == StopCause::none && attempt &&
         job.on_spot(*attempt) && attempt->state != AttemptState::ended &&
         attempt->interruption.empty() && !attempt->first_failed;
}

// Returns the time until this host is interrupted at random: exponentially distributed, drawn once
// for each host of each attempt.
double taken_after_hours(const Spot& spot, AttemptId attempt, HostIndex host) {
  SeededRandom mix(spot.seed);
  uint64_t seed = mix.next();
  for (const uint64_t part : {uint64_t(attempt.job), uint64_t(attempt.number), uint64_t(host)})
    seed = SeededRandom(seed ^ part).next();
  const double uniform =
      double(SeededRandom(seed).below(kUniformSteps) + 1) / double(kUniformSteps);
  return -std::log(uniform) / spot.interruptions_per_host_hour;
}

// `at` is in the time of the attempt's job (domain::Job::own_time).
bool was_there(const Attempt& attempt, Instant at) {
  return attempt.started < at && (!attempt.ended || *attempt.ended > at);
}

class InterruptionPlanner {
 public:
  InterruptionPlanner(const std::vector<std::shared_ptr<const Job>>& jobs, const Spot& spot,
                      Instant now)
      : jobs_(jobs), spot_(spot), now_(now) {}

  std::vector<SpotInterruption> choose() {
    for (const TraceEvent& event : spot_.trace)
      if (event.at <= now_ && now_ - event.at < kTraceLineCounts) take(event);
    if (spot_.interruptions_per_host_hour > 0) take_by_chance();
    return std::move(interruptions_);
  }

 private:
  // Counts hosts that ran at the event's time, including those that have ended since.
  void take(const TraceEvent& event) {
    uint32_t left = event.hosts;
    for (const auto& job : jobs_) {
      if (!event.region.empty() && event.region != job->key.region) continue;
      for (const Attempt& attempt : job->attempts) {
        if (!job->on_spot(attempt) || !was_there(attempt, job->own_time(event.at))) continue;
        for (HostIndex host = 0; host < job->spec.hosts(); ++host) {
          if (!event.instance_type.empty() && event.instance_type != job->spec.instance_type(host))
            continue;
          if (!event.machine.empty()) {
            if (host >= attempt.hosts.size() || attempt.hosts[host].machine != event.machine)
              continue;
          } else if (left-- == 0) {
            return;
          }
          take(
              *job, attempt, host,
              "spot capacity was reclaimed (line " + std::to_string(event.line) + " of the trace)");
        }
      }
    }
  }

  void take_by_chance() {
    for (const auto& job : jobs_) {
      if (!may_be_taken(*job)) continue;
      const Attempt& attempt = *job->attempt();
      for (HostIndex host = 0; host < attempt.hosts.size(); ++host) {
        const double hours = taken_after_hours(spot_, {job->number, attempt.number}, host);
        if (double((job->own_time(now_) - attempt.started).count()) >=
            hours * double(kMilliseconds))
          take(*job, attempt, host, "spot capacity was reclaimed (by chance, as the config says)");
      }
    }
  }

  void take(const Job& job, const Attempt& attempt, HostIndex host, const std::string& reason) {
    const AttemptId id{job.number, attempt.number};
    const bool present = job.attempt()->number == attempt.number && may_be_taken(job);
    const bool taken = std::ranges::any_of(
        interruptions_, [&](const SpotInterruption& each) { return each.attempt == id; });
    if (present && !taken) interruptions_.push_back({id, host, reason});
  }

  const std::vector<std::shared_ptr<const Job>>& jobs_;
  const Spot& spot_;
  const Instant now_;
  std::vector<SpotInterruption> interruptions_;
};

Result<TraceEvent> parse_event(std::string_view line, Instant start) {
  const auto fields = split(line, ',');
  if (fields.size() != 4)
    return invalid(std::to_string(fields.size()) +
                   " fields: expected at,region,instance_type,hosts");
  const auto field = [&](size_t i) { return std::string(trim(fields[i])); };
  TraceEvent event;
  if (const auto seconds = parse_double(field(0))) {
    if (!(std::fabs(*seconds) <= double(domain::kSecondsMax)))
      return invalid("'" + shorten(field(0), 60) + "' must be at most " +
                     std::to_string(domain::kSecondsMax) + " seconds");
    event.at = start + Duration{int64_t(*seconds * 1000)};
  } else {
    event.at = TRY(parse_iso8601(field(0)).in("'" + shorten(field(0), 60) +
                                              "' is neither seconds nor an instant"));
  }
  event.region = field(1);
  event.instance_type = field(2);
  const std::string who = field(3);
  if (who.empty()) return event;
  if (const auto hosts = parse_int(who)) {
    if (*hosts < 1 || *hosts > int64_t{1} << 20)
      return invalid("invalid number of hosts '" + shorten(who, 60) + "'");
    event.hosts = uint32_t(*hosts);
  } else {
    event.machine = who;
  }
  return event;
}

}  // namespace

Result<std::vector<TraceEvent>> parse_trace(std::string_view text, Instant start) {
  std::vector<TraceEvent> events;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    events.push_back(TRY(parse_event(line, start).in("line " + std::to_string(number))));
    events.back().line = number;
  }
  return events;
}

std::vector<SpotInterruption> spot_interruptions(
    const std::vector<std::shared_ptr<const Job>>& jobs, const Spot& spot, Instant now) {
  return InterruptionPlanner(jobs, spot, now).choose();
}

}  // namespace trainyard::reconcile
