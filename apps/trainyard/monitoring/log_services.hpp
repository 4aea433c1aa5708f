// Starts the services that work on stored log events: the router of metric and subscription
// filters, deliveries, exports, and Logs Insights.
//
// Threads: one thread calls start() and offer() before the server accepts requests and agents; the
// function of appended() is callable from anywhere. Errors: those of reading the filters.
// Lifetime: the storage, the clock and the random numbers outlive it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "config/config.hpp"
#include "insights/queries.hpp"
#include "log_routing/deliveries.hpp"
#include "log_routing/exports.hpp"
#include "log_routing/router.hpp"
#include "objects/objects.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "operations/services.hpp"

namespace trainyard::apps {

class LogServices {
 public:
  LogServices() = default;
  ~LogServices();
  LogServices(const LogServices&) = delete;
  // The function that the logs call after each append. Lifetime: this object outlives the logs'
  // use.
  observe::EventsAppended appended();
  Result<void> start(observe::Logs& logs, observe::Metrics& metrics, objects::Objects& objects,
                     const std::string& account, const config::Config& config, Clock& clock,
                     Random& random);
  // Adds these services to those of requests.
  void offer(api::Services& services);

 private:
  std::unique_ptr<log_routing::LogRouter> router_;
  std::optional<insights::Queries> queries_;
  std::optional<log_routing::Exports> exports_;
  std::unique_ptr<log_routing::Deliveries> deliveries_;  // uses the router's targets
};

}  // namespace trainyard::apps
