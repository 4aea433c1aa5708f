// Deliverer attempts pending deliveries on a few threads until each has succeeded, was refused
// permanently, or has failed kAttemptsMax times.
//
// delivery_plan.hpp decides which deliveries are attempted, and this class attempts them. A
// delivery is removed from the store after its success, so a message that was sent just before a
// crash is sent again: each is delivered at least once.
//
// Threads:  start() starts `limits.threads` threads, which the destructor ends; all functions are
//           callable from anywhere.
// Errors:   failed attempts are logged. If a result cannot be stored, the delivery stays pending
//           and is attempted again. If the store accepts no further changes (its failure()), no
//           delivery is attempted, since no result could be stored; this is logged once.
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
struct TargetInfo {
  bool exists = false;  // false: its deliveries are dropped
  bool trusted = true;  // false: a subscription that its endpoint has not confirmed
  std::string host;     // equal for targets on one machine; "": none
};

struct DelivererParts {
  DeliveryStore& store;
  Clock& clock;
  Random& random;
  DeliveryLimits limits = {};
  std::function<TargetInfo(const std::string& target)> info;
  // Sends a message; may block as long as the transport does.
  std::function<Sent(const std::string& target, const Message& message)> send;
};

class Deliverer {
 public:
  // The limit on pending deliveries of one target; newer ones are dropped. Each uses some 200 bytes
  // of memory; its message stays on disk.
  static constexpr size_t kPerTargetMax = 10'000;
  // The limit on pending deliveries of one target while all targets together have limits.pending,
  // so that targets that fail do not prevent deliveries to others.
  static constexpr size_t kPerTargetWhenFullMax = 20;

  explicit Deliverer(DelivererParts parts);
  ~Deliverer();  // ends the threads after their current attempts
  Deliverer(const Deliverer&) = delete;

  void start();
  // Adds deliveries. Requires: they are stored.
  void add(std::vector<Delivery> deliveries);
  // Returns whether the target is below its limit on pending deliveries.
  bool has_capacity(const std::string& target) const;

  // Attempts the deliveries that are due, one after another; for tests that do not call start().
  // Returns the number of attempts.
  size_t attempt_due();
  struct Counts {
    size_t pending = 0;
    uint64_t delivered = 0, failed = 0, refused = 0;  // since the start; failed: to be retried
  };
  Counts counts() const;

 private:
  struct LaneState {
    TargetInfo info;
    std::multimap<Instant, Delivery> waiting;
    size_t in_flight = 0;
    uint32_t failures = 0;  // consecutive failed attempts
    Instant paused_until{};
  };

  void run();
  // Removes and returns a delivery to attempt now; nullopt: none is due. Sets `next` to the instant
  // at which another may be due.
  std::optional<Delivery> take_due(std::optional<Instant>& next) REQUIRES(mutex_);
  void attempt(Delivery delivery) EXCLUDES(mutex_);
  Sent send(const Delivery& delivery);
  void store_result(Delivery delivery, const Sent& sent) EXCLUDES(mutex_);

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
