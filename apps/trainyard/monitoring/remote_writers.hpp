// Sends the points of metrics to the receivers of the configuration, by Prometheus' remote write
// protocol or OTLP (remote_write/sender.hpp), with the names and labels that scrapes have.
//
// Threads: start() and stop() by one thread, once; add_to() from any, after start(). Errors: none.
// Lifetime: journal and control outlive it.
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

// The names under which receivers read the journal of points. Points that the server itself has
// received by remote write are left out: they would return to their sender.
observe::JournalSettings journal_of(const config::PrometheusSettings& settings);

class RemoteWriters {
 public:
  // `journal` nullptr: no receiver is configured. `instance`: host and port of this server, the
  // label of all series. `started`: the beginning of counters.
  void start(const config::PrometheusSettings& settings, observe::PointJournal* journal,
             control::Control& control, const std::string& instance, Instant started);
  // Waits for requests in progress: for one request's limit at most, however many receivers there
  // are.
  void stop();
  void add_to(exposition::Families& families) const;

 private:
  observe::PointJournal* journal_ = nullptr;
  std::vector<std::unique_ptr<remote_write::Sender>> senders_;
};

}  // namespace trainyard::apps
