#include "schedule/plan_effects.hpp"

#include <cmath>
#include <map>
#include <string_view>

#include "schedule/preferences.hpp"

namespace trainyard::schedule {
namespace {

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Running running_of(const WaitingJob& waiting, const Start& start, Instant now) {
  const WaitingJob job = with_preference(waiting, start.preference.value_or(0));
  Running running;
  running.job = job.job;
  running.name = job.name;
  running.hosts = start.hosts;
  running.queue = job.queue;
  running.share = job.share;
  running.priority = job.priority;
  for (const Choice& choice : job.choices)
    if (choice.environment == start.environment) {
      running.needs = choice.needs;
      break;
    }
  running.demands = job.demands;
  if (job.lasts_max) running.ends_by = now + *job.lasts_max;
  running.started = now;
  running.gives_way = !job.demands.empty();
  return running;
}

void count_usage(Snapshot& snapshot, Duration passed) {
  for (size_t queue = 0; queue < snapshot.queues.size(); ++queue) {
    auto& fair = snapshot.queues[queue].fair;
    if (!fair || fair->decay <= Duration{}) continue;
    std::map<std::string_view, double> held;  // vCPU, by share
    for (const Running& running : snapshot.running)
      if (running.queue == queue)
        for (const Placement& host : running.hosts) held[running.share] += host.share.cpus;
    const double window = seconds_of(fair->decay);
    const double kept = std::exp(-seconds_of(passed) / window);
    for (FairShare::Share& share : fair->shares)
      share.usage = share.usage * kept + held[share.name] * window * (1 - kept);
  }
}

}  // namespace trainyard::schedule
