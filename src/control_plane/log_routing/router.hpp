// LogRouter applies the filters of log groups to stored events: metric filters publish samples,
// subscription filters send messages to webhooks or append events to other groups.
//
// The destination of a filter is a webhook, a log group, or a LogDestination, which is a name for
// one of them. Events that were forwarded from another group are not forwarded again.
//
// Storing events never waits for the router: enqueue() puts them into a queue of limited size.
// Events that do not fit are dropped, counted and reported in the server's log. A filter that is
// invalid is reported and ignored. Stored events that were not routed before a crash are not routed
// afterwards.
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
  Duration tick = 5s;  // interval at which default values of metric filters are published
  Duration report_interval = 60s;  // between two log lines about dropped events
  DeliverySettings delivery;
};

struct RouterCounts {
  uint64_t events = 0;   // events to which filters were applied
  uint64_t dropped = 0;  // events that did not fit into the queue
};

class LogRouter {
 public:
  // Reads the definitions and starts the threads. Errors: those of reading.
  static Result<std::unique_ptr<LogRouter>> start(observe::Logs& logs, observe::Metrics& metrics,
                                                  Clock& clock, Post post, RouterSettings settings);
  ~LogRouter();
  LogRouter(const LogRouter&) = delete;

  // Queues events that were stored.
  void enqueue(const observe::StreamKey& key, const std::vector<observe::LogEvent>& events);
  // Reads the definitions of filters and destinations again, after a change.
  Result<void> reload();
  const LogTargets& targets() const { return targets_; }
  // Call reload() after changing them.
  LogDestinations& destinations() { return destinations_; }
  // The deliveries that API requests manage; nullptr: such requests are rejected. Set before the
  // first request. Lifetime: outlives the last request.
  Deliveries* deliveries() const { return deliveries_of_requests_; }
  void set_deliveries(Deliveries* deliveries) { deliveries_of_requests_ = deliveries; }
  RouterCounts counts();
  // Waits for at most this time until all queued events are routed and their messages delivered.
  bool drain(Duration at_most);
  // Ends the router's thread; later events stay in the queue. Call it from one thread only.
  void stop();

 private:
  struct Subscription {
    std::string name;
    observe::FilterPattern pattern;
    Delivery* delivery;  // nullptr: the events go to the group
    GroupName group;
  };
  // The filters of one group, used only by the router's thread.
  struct GroupFilters {
    // by filter name: its definition text and its publisher
    std::map<std::string, std::pair<std::string, MetricPublisher>> metrics;
    std::vector<Subscription> subscriptions;
  };
  // The texts of the stored definitions: by group, then by name.
  struct Definitions {
    std::map<GroupName, std::map<std::string, std::string>> metrics, subscriptions;
    // by region and name
    std::map<std::pair<std::string, std::string>, std::string> destinations;
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
  void apply_definitions(const Definitions& definitions);
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
  // The next three members are used only by the router's thread.
  std::map<GroupName, GroupFilters> filters_;
  uint64_t message_number_ = 0;
  std::chrono::nanoseconds forward_report_at_{};

  Mutex reloading_;  // held by reload(); locked before mutex_
  Mutex mutex_;
  ConditionVariable changed_;
  std::shared_ptr<const Definitions> definitions_ GUARDED_BY(mutex_);
  bool fresh_ GUARDED_BY(mutex_) = true;  // the thread has not yet applied definitions_
  std::deque<Batch> queue_ GUARDED_BY(mutex_);
  size_t queue_bytes_ GUARDED_BY(mutex_) = 0;
  bool busy_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  RouterCounts counts_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds report_at_ GUARDED_BY(mutex_){};
  std::thread thread_;  // last: it uses the members above
};

}  // namespace trainyard::log_routing
