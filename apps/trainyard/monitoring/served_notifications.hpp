// ServedNotifications connects notifications and events with the server's other parts.
//
// Call open(), offer(), pages() and start() in this order, once each.
//
// Threads: confined to the main thread. Lifetime: the parts outlive it; it outlives the control
// loops and requests. Errors: of open(): those of the data directory.
#pragma once

#include <memory>
#include <string>

#include "alarms/loop.hpp"
#include "auth/delegated_access.hpp"
#include "config/config.hpp"
#include "control/control.hpp"
#include "events/job_events.hpp"
#include "gateway/agents.hpp"
#include "net/http_server.hpp"
#include "notify/event_bus.hpp"
#include "notify/notifications.hpp"
#include "observe/logs.hpp"
#include "operations/services.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

struct NotificationParts {
  const config::Config& config;
  const DataDirectory& data;
  std::string own_endpoint;  // "https://trainyard.example:4566", as endpoints reach this server
  std::string account;
  const api::DelegatedAccess& access;
  observe::Logs& logs;
  control::ControlPlane& control;
  gateway::Agents& agents;
  Clock& clock;
  Random& random;
};

class ServedNotifications {
 public:
  static Result<std::unique_ptr<ServedNotifications>> open(const NotificationParts& parts);
  ~ServedNotifications();

  void offer(api::Services& services);
  // Returns the pages of SNS in front of the next handler.
  net::Handler& pages(net::Handler& next);
  // Publishes the message of an alarm's action to its topic, or the event of its change to the bus.
  Result<void> publish(const alarms::PendingAction& action);
  // Starts deliveries and the events about changes of jobs.
  void start();

 private:
  ServedNotifications(std::unique_ptr<notify::Notifications> notifications,
                      const NotificationParts& parts);
  Result<void> put_event(const alarms::PendingAction& action);

  gateway::Agents& agents_;
  std::unique_ptr<notify::Notifications> notifications_;
  notify::EventBus bus_;
  api::events::JobEvents job_events_;
  std::unique_ptr<net::Handler> pages_;
};

}  // namespace trainyard::apps
