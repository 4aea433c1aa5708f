// LogRouter applies the filters of log groups to events that were stored: metric filters publish
// samples, subscription filters send messages to webhooks or append events to other groups.
//
// A filter's destination is a webhook, a log group, or a name (LogDestination) that leads to one of
// them. Events that were forwarded from another group are not forwarded again.
//
// Storing events never waits for it: take() puts them into a queue of limited size. Events that do
// not fit are dropped, counted and reported in the server's log. A filter that cannot be used is
// reported and passed over. After a crash, events that were stored but not routed yet are not
// routed.
//
// Threads: callable from anywhere; the destructor ends its threads. Errors: those of definitions
// and of observe. Lifetime: logs, metrics and clock outlive it.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "log_routing/definitions.hpp"
#include "log_routing/delivery.hpp"
#include "log_routing/destinations.hpp"
#include "log_routing/metric_publisher.hpp"
#include "log_routing/targets.hpp"
#include "observe/log_definitions.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"

namespace trainyard::log_routing {

class Deliveries;  // deliveries.hpp

struct RouterSettings {
  std::string account;
  std::vector<Webhook> webhooks;  // distinct names
  size_t queue_bytes_max = 64 << 20;
  Duration tick = 5s;              // between looks for default values that are due
  Duration report_interval = 60s;  // between lines about dropped events
  DeliverySettings delivery;
};

struct RouterCounts {
  uint64_t events = 0;   // that filters were applied to
  uint64_t dropped = 0;  // events that did not fit into the queue
};

class LogRouter {
 public:
  // Reads the definitions. Errors: of reading them.
  static Result<std::unique_ptr<LogRouter>> start(observe::Logs& logs, observe::Metrics& metrics,
                                                  Clock& clock, Post post, RouterSettings settings);
  ~LogRouter();
  LogRouter(const LogRouter&) = delete;

  // Called with events that were stored.
  void take(const observe::StreamKey& key, const std::vector<observe::LogEvent>& events);
  // Reads the definitions again, after a change.
  Result<void> reload();
  const LogTargets& targets() const { return targets_; }
  // reload() after a change.
  LogDestinations& destinations() { return destinations_; }
  // The deliveries of the same logs, for requests; nullptr: they are rejected. Set before requests
  // arrive. Lifetime: they end after the last request.
  Deliveries* deliveries() const { return deliveries_of_requests_; }
  void set_deliveries(Deliveries* deliveries) { deliveries_of_requests_ = deliveries; }
  RouterCounts counts();
  // Waits until all events that were taken are routed, for at most that time.
  bool drain(Duration at_most);
  // Ends the router's thread: events that are taken later stay in the queue. Called by one thread.
  void stop();

 private:
  struct Subscription {
    std::string name;
    observe::FilterPattern pattern;
    Delivery* delivery;  // nullptr: the events go to the group
    GroupName group;
  };
  // The filters of one group, used by the router's thread alone.
  struct GroupFilters {
    std::map<std::string, std::pair<std::string, MetricPublisher>> metrics;  // name -> text and it
    std::vector<Subscription> subscriptions;
  };
  // The definitions as they are stored: name -> text, by group.
  struct Definitions {
    std::map<GroupName, std::map<std::string, std::string>> metrics, subscriptions;
    std::map<std::pair<std::string, std::string>, std::string> destinations;  // region and name
  };
  struct Batch {
    observe::StreamKey key;
    std::vector<observe::LogEvent> events;
    size_t bytes = 0;
    bool forwarded = false;
  };

  LogRouter(observe::Logs& logs, observe::Metrics& metrics, Clock& clock, Post post,
            RouterSettings settings);
  void work();
  void use(const Definitions& definitions);
  Result<Subscription> subscription_of(const Definitions& definitions, const GroupName& group,
                                       const std::string& name, const std::string& text);
  void route(const Batch& batch);
  void forward(const Batch& batch, const Subscription& subscription);
  void send(const Batch& batch, const Subscription& subscription);
  void publish(std::vector<observe::MetricRecord>& records);
  void finish_minutes();

  observe::Logs& logs_;
  observe::Metrics& metrics_;
  Clock& clock_;
  const RouterSettings settings_;
  const LogTargets targets_;
  Deliveries* deliveries_of_requests_ = nullptr;
  LogDestinations destinations_;
  std::map<std::string, std::unique_ptr<Delivery>> deliveries_;  // by name of the webhook
  // Used by the router's thread alone.
  std::map<GroupName, GroupFilters> filters_;
  uint64_t message_number_ = 0;
  std::chrono::nanoseconds forward_report_at_{};

  Mutex reloading_;  // held from reading the definitions until they are in use; before mutex_
  Mutex mutex_;
  ConditionVariable changed_;
  std::shared_ptr<const Definitions> definitions_ GUARDED_BY(mutex_);
  bool fresh_ GUARDED_BY(mutex_) = true;  // the thread has not used definitions_ yet
  std::deque<Batch> queue_ GUARDED_BY(mutex_);
  size_t queue_bytes_ GUARDED_BY(mutex_) = 0;
  bool busy_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  RouterCounts counts_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds report_at_ GUARDED_BY(mutex_){};
  std::thread thread_;  // last: it uses the members above
};

}  // namespace trainyard::log_routing
