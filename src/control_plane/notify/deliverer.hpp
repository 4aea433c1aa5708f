// Deliverer attempts pending deliveries on a few threads until each has succeeded, was refused for
// good, or has failed kAttemptsMax times.
//
// delivery_plan.hpp decides; this class acts. A delivery is removed from the store after its
// success, so one that is interrupted in between is sent again: at least once.
//
// Threads:  its own, `limits.threads` of them, between start() and the destructor; all functions
// are
//           callable from anywhere.
// Errors:   of attempts: in the log. A fault of the store leaves the delivery pending; it is
//           attempted again, unless the store takes no more changes (its failure()): then none
//           is attempted, since no result could be stored, and the log has one line about it.
// Lifetime: store, clock, random and what the functions refer to outlive it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "notify/delivery_plan.hpp"
#include "notify/delivery_store.hpp"
#include "notify/http_sender.hpp"

namespace trainyard::notify {

// Describes a target before an attempt.
struct TargetFacts {
  bool exists = false;  // its deliveries are dropped otherwise
  bool trusted = true;  // not: a subscription that its endpoint has not confirmed
  std::string host;     // shared by targets on one machine; "": none
};

struct DelivererParts {
  DeliveryStore& store;
  Clock& clock;
  Random& random;
  DeliveryLimits limits = {};
  std::function<TargetFacts(const std::string& target)> facts;
  // Blocks for as long as the transport does.
  std::function<Sent(const std::string& target, const Message& message)> send;
};

class Deliverer {
 public:
  // Pending deliveries of one target: with more, the newest are dropped. Each uses some 200 bytes
  // of memory; its message stays on disk.
  static constexpr size_t kPerTargetMax = 10'000;
  // The same while limits.pending deliveries are pending: targets that fail do not prevent the
  // deliveries to others.
  static constexpr size_t kPerTargetWhenFullMax = 20;

  explicit Deliverer(DelivererParts parts);
  ~Deliverer();  // ends the threads after their current attempts
  Deliverer(const Deliverer&) = delete;

  void start();
  // Adds deliveries that are stored.
  void add(std::vector<Delivery> deliveries);
  // Returns whether another delivery for the target may be stored.
  bool can_take(const std::string& target) const;

  // Attempts the deliveries that are due, one after the other; for tests without start(). Returns
  // the number of attempts.
  size_t attempt_due();
  struct Counts {
    size_t pending = 0;
    uint64_t delivered = 0, failed = 0, refused = 0;  // since the start; failed ones were retried
  };
  Counts counts() const;

 private:
  struct LaneState {
    TargetFacts facts;
    std::multimap<Instant, Delivery> waiting;
    size_t in_flight = 0;
    uint32_t failures = 0;  // in a row
    Instant paused_until{};
  };

  void run();
  // Takes a delivery to attempt now; nullopt: none is due. `next`: when to look again.
  std::optional<Delivery> take(std::optional<Instant>& next) REQUIRES(mutex_);
  void attempt(Delivery delivery) EXCLUDES(mutex_);
  Sent send(const Delivery& delivery);
  void settle(Delivery delivery, const Sent& sent) EXCLUDES(mutex_);

  const DelivererParts parts_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::string, LaneState> lanes_ GUARDED_BY(mutex_);
  Counts counts_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool failure_logged_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::notify
