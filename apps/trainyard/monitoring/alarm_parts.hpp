// AlarmParts owns the stores of alarms and dashboards, and starts the loop that evaluates alarms
// and runs their actions.
//
// Threads: one thread calls the functions in the order of declaration. Lifetime: this object and
// the arguments of start_loop() outlive the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "alarms/dashboards.hpp"
#include "alarms/loop.hpp"
#include "alarms/store.hpp"
#include "cloudwatch/alarm_texts.hpp"
#include "config/config.hpp"
#include "operations/services.hpp"

namespace trainyard::apps {

// Returns the settings of metrics from the config, which limit the metrics of one job.
observe::MetricSettings metric_settings_of(const config::Config& config);

class AlarmParts {
 public:
  Result<void> open(const std::string& directory);
  void give_to(api::Services& services) const;
  // `notifications` publishes to topics and to the event bus; empty: actions for topics fail.
  std::unique_ptr<alarms::AlarmLoop> start_loop(observe::Metrics& metrics,
                                                control::Control& control, Clock& clock,
                                                const std::string& account,
                                                std::function<std::string()> why_not,
                                                alarms::Sink notifications = nullptr);

 private:
  std::unique_ptr<alarms::AlarmStore> store_;
  std::unique_ptr<alarms::Dashboards> dashboards_;
  const api::cloudwatch::CloudwatchTexts texts_{};
};

}  // namespace trainyard::apps
