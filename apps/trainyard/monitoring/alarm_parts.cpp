#include "trainyard/monitoring/alarm_parts.hpp"

#include <utility>

#include "contract/aws_texts.hpp"
#include "remote_write/received.hpp"
#include "trainyard/monitoring/alarm_actions.hpp"

namespace trainyard::apps {

observe::MetricSettings metric_settings_of(const config::Config& config) {
  observe::MetricSettings settings = config.metrics;
  settings.group_of = [](const observe::MetricKey& key) -> std::string {
    // All series from remote write count as those of one job.
    if (key.name_space == remote_write::kReceivedNamespace)
      return key.region + "//" + key.name_space;
    if (const auto job = key.dimensions.find(contract::kTrainingJobDimension);
        job != key.dimensions.end())
      return key.region + "/" + job->second;
    // "JOB/algo-1"
    if (const auto host = key.dimensions.find("Host"); host != key.dimensions.end())
      return key.region + "/" + host->second.substr(0, host->second.find('/'));
    return "";
  };
  return settings;
}

Result<void> AlarmParts::open(const std::string& directory) {
  store_ = TRY(alarms::AlarmStore::open(directory).in("opening the alarms"));
  dashboards_ = TRY(alarms::Dashboards::open(directory).in("opening the dashboards"));
  return ok();
}

void AlarmParts::give_to(api::Services& services) const {
  services.alarms = store_.get();
  services.dashboards = dashboards_.get();
}

std::unique_ptr<alarms::AlarmLoop> AlarmParts::start_loop(observe::Metrics& metrics,
                                                          control::Control& control, Clock& clock,
                                                          const std::string& account,
                                                          std::function<std::string()> why_not,
                                                          alarms::Sink notifications) {
  auto loop = std::make_unique<alarms::AlarmLoop>(
      *store_, metrics, clock, texts_, make_alarm_sink(control, account, std::move(notifications)),
      std::move(why_not));
  loop->start();
  return loop;
}

}  // namespace trainyard::apps
