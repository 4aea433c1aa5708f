// Deliveries carries out the deliveries of DeliveryCatalogue: it reads the events of their sources
// and writes them to buckets, log groups and webhooks.
//
// A delivery reads each stream from a stored position, and stores the next position after it has
// written what it read. So events are delivered at least once, even after a crash, and in the order
// of their stream. The name of an object depends on the position, so an object that is written
// again replaces the first. Each type of destination has a thread, so a destination that fails does
// not delay other types; it is retried after pauses that double up to a limit. A run ends at the
// events that were the last when it began, and the delivery that ran least recently runs next, so a
// busy delivery does not block the others. A run stops before its next page when its delivery is
// changed or removed.
//
// Threads: callable from anywhere; the destructor waits until the current page of events is
// written. Errors: those of observe. Lifetime: logs, objects, clock, random and targets outlive it.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "log_routing/delivery.hpp"
#include "log_routing/delivery_catalogue.hpp"
#include "log_routing/delivery_records.hpp"
#include "log_routing/targets.hpp"
#include "objects/objects.hpp"
#include "observe/logs.hpp"

namespace trainyard::log_routing {

struct DeliveriesSettings {
  // The time between two objects of one delivery. It makes objects fewer and larger, as on AWS.
  Duration object_interval = 5min;
  Duration tick = 1s;         // between two searches for deliveries that are due
  Duration first_pause = 1s;  // after a failure; doubles
  Duration pause_max = 5min;
  size_t page_bytes = 4 << 20;    // in one object, before compression
  size_t post_bytes = 512 << 10;  // in one request to a webhook
};

class Deliveries {
 public:
  // Reads the deliveries and starts the threads. Errors: those of reading.
  static Result<std::unique_ptr<Deliveries>> start(observe::Logs& logs, objects::Objects& objects,
                                                   const LogTargets& targets,
                                                   std::vector<ExternalSource> external, Post post,
                                                   Clock& clock, Random& random,
                                                   DeliveriesSettings settings = {});
  ~Deliveries();
  Deliveries(const Deliveries&) = delete;

  // Reports that events were stored in this stream.
  void notify(const observe::StreamKey& key);
  DeliveryCatalogue& catalogue() { return catalogue_; }
  // Reads the deliveries again, after a change of the catalogue. After an error, the deliveries in
  // use stay the same.
  Result<void> reload();
  // Removes a delivery from the catalogue and stops it. Errors: not_found.
  Result<void> remove(const std::string& region, const std::string& id);
  // Waits for at most this time until all events of notify() are delivered. Returns false if the
  // time has passed.
  bool drain(Duration at_most);

 private:
  using Id = std::pair<std::string, std::string>;  // region and id
  // A delivery with its source and destination.
  struct Job {
    Id id;
    LogDelivery delivery;
    std::string service;
    SourceStreams source;
    DeliveryDestination destination;
    bool has_same_settings(const Job& other) const;
  };
  struct Progress {
    std::shared_ptr<const Job> job;
    bool all = true;                // each stream may have events that were not delivered
    std::set<std::string> streams;  // if not `all`: the streams that may have such events
    std::chrono::nanoseconds due{};
    Duration pause{};       // after failures
    uint64_t last_run = 0;  // the number of its last run, counted over all deliveries
    bool busy = false;
    bool idle() const { return !all && streams.empty() && !busy; }
  };
  // The events of one page in the form in which a delivery writes them: messages are records.
  struct Batch {
    uint64_t begin = 0;  // the position of the page
    size_t taken = 0;    // the number of events of the page that it covers
    std::vector<observe::LogEvent> records;
  };
  // The position up to which the events of one stream were delivered.
  struct Position {
    uint64_t at = 0;
    int64_t stream_created = 0;
    bool known = false;
  };

  Deliveries(observe::Logs& logs, objects::Objects& objects, const LogTargets& targets,
             std::vector<ExternalSource> external, Post post, Clock& clock, Random& random,
             DeliveriesSettings settings);
  // Returns nullptr if the source or the destination of the delivery no longer exists.
  Result<std::shared_ptr<const Job>> job_of(const std::string& region,
                                            const observe::LogDefinition& stored);
  void work(DeliveryType type);
  Progress* due_work(DeliveryType type) REQUIRES(mutex_);
  void finish(const Job& job, const Result<void>& done, bool all, std::set<std::string> streams)
      REQUIRES(mutex_);
  // Returns false if the delivery was changed or removed meanwhile.
  bool is_current(const Job& job);
  Result<void> run(const Job& job, bool all, const std::set<std::string>& streams);
  Result<void> deliver_stream(const Job& job, const observe::LogStreamInfo& stream);
  Result<void> write(const Job& job, const observe::StreamKey& key, const Batch& batch);
  Result<void> write_object(const Job& job, const observe::StreamKey& key, const Batch& batch);
  Result<void> write_events(const Job& job, const observe::StreamKey& key, const Batch& batch);
  Result<void> post_events(const Job& job, const observe::StreamKey& key, const Batch& batch);
  static Batch batch_of(const Job& job, const observe::StreamKey& key, const observe::LogPage& page,
                        size_t bytes_max);
  Result<std::vector<observe::LogStreamInfo>> streams_of(const Job& job, bool all,
                                                         const std::set<std::string>& streams);
  Result<Position> load(const Job& job, const std::string& stream);
  Result<void> store(const Job& job, const std::string& stream, const Position& position);
  void forget_if_removed(const Id& id);
  Result<void> forget_removed_deliveries();
  Result<void> forget_removed_streams(const Job& job,
                                      const std::vector<observe::LogStreamInfo>& streams);

  observe::Logs& logs_;
  objects::Objects& objects_;
  const LogTargets& targets_;
  const Post post_;
  Clock& clock_;
  const DeliveriesSettings settings_;
  DeliveryCatalogue catalogue_;
  // Held from reading the catalogue until what was read is in use; locked before mutex_.
  Mutex reloading_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::atomic<bool> stopping_ = false;  // changed while mutex_ is locked
  std::map<Id, Progress> progress_ GUARDED_BY(mutex_);
  uint64_t runs_ GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;  // last: they use the members above
};

}  // namespace trainyard::log_routing
