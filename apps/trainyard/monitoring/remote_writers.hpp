// Sends the points of metrics to the receivers in the configuration, with Prometheus' remote write
// protocol or OTLP (remote_write/sender.hpp), under the same names and labels as in scrapes.
//
// Threads: one thread calls start() and stop(), once; add_to() from any, after start(). Errors:
// none. Lifetime: journal and control outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/prometheus.hpp"
#include "control/control.hpp"
#include "exposition/family.hpp"
#include "observe/metrics.hpp"
#include "observe/point_journal.hpp"
#include "remote_write/sender.hpp"

namespace trainyard::apps {

// Returns the settings of the journal from which receivers are served. It leaves out points that
// this server has received by remote write, which would return to their sender.
observe::JournalSettings journal_of(const config::PrometheusSettings& settings);

class RemoteWriters {
 public:
  // `journal`: nullptr if no receiver is configured. `instance`: host and port of this server, the
  // label of all series. `started`: the start time of counters.
  void start(const config::PrometheusSettings& settings, observe::PointJournal* journal,
             control::Control& control, const std::string& instance, Instant started);
  // Waits for requests in progress, at most for the time limit of one request for all receivers.
  void stop();
  void add_to(exposition::Families& families) const;

 private:
  observe::PointJournal* journal_ = nullptr;
  std::vector<std::unique_ptr<remote_write::Sender>> senders_;
};

}  // namespace trainyard::apps
