// NetworkReaper removes the networks of ended gangs in the background, one after another, and not
// while a gang starts.
//
// The kernel waits for all its readers whenever a port leaves a bridge, some 40 ms for a network of
// two hosts and as much again for the next one (eleven at once: 370 ms), and holds the lock that a
// starting gang's interfaces need as well. So networks are removed one at a time, with starts in
// between. They wait until starts have been quiet for a while; where one start follows another, one
// network is removed after each: until the next start, the job has to run.
//
// Threads: callable from anywhere; works on a thread of its own, or in work(). Errors: a network
// that cannot be removed is logged and retried.
#pragma once

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "networks/network.hpp"

namespace trainyard::launch {

// The timing of removals.
struct ReaperPace {
  // How long no gang must have started: longer than the gap between two jobs that follow each
  // other.
  Duration quiet = 150ms;
  // Under continuous starts: the network is removed after this time in any case.
  Duration delay_max = 2s;
  // Beyond this number of networks, removal no longer waits for starts: each network holds
  // addresses of the pool.
  size_t waiting_max = 64;
  // Removes one after the other. False where the kernel waits once for all: then a start does not
  // remove a single one, so that many are removed together.
  bool one_by_one = true;
};

class NetworkReaper {
 public:
  static constexpr Duration kRetryPause = 1s;

  using Remove = std::function<Result<void>(const std::vector<networks::PrivateNetwork>&)>;
  // Without a thread, all removals happen in work(), drain() and the destructor.
  explicit NetworkReaper(Clock& clock, Remove remove = networks::remove_networks,
                         ReaperPace pace = {}, bool own_thread = true);
  ~NetworkReaper();  // pending removals are completed first

  // `then` is called, on the reaper's thread, once it is gone, and again after a pause as long as
  // it fails: until it has succeeded, the addresses are taken.
  void take(networks::PrivateNetwork network, std::function<Result<void>()> then);
  // As take(), of something without a network.
  void take_rest(std::function<Result<void>()> then);
  // Held while a gang's network is made.
  class Start {
   public:
    explicit Start(NetworkReaper& reaper);
    ~Start();
    Start(const Start&) = delete;

   private:
    NetworkReaper& reaper_;
  };
  // Networks whose addresses are not free yet.
  std::vector<networks::Subnet> waiting() const;
  // Returns once no removal is pending, or the last try has failed. All pending networks are
  // removed at once.
  void drain();
  // Does one round of removals if one is due. Requires: it has no thread.
  void work();

 private:
  struct Item {
    networks::PrivateNetwork network;
    std::function<Result<void>()> then;
    bool removed = false;  // the network: `then` is missing
    std::chrono::nanoseconds since;
  };
  void run();
  // Removes what is due now. Returns false if that failed. Requires: something waits.
  bool round() REQUIRES(mutex_);
  // All are removed, regardless of starts.
  bool in_haste() const REQUIRES(mutex_) { return stopped_ || drains_ > 0; }
  // When to begin, by the monotonic clock, as far as is known now.
  std::chrono::nanoseconds due() const REQUIRES(mutex_);

  Clock& clock_;
  const Remove remove_;
  const ReaperPace pace_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Item> items_ GUARDED_BY(mutex_);  // a network stays until it is removed
  int starts_ GUARDED_BY(mutex_) = 0;
  bool one_may_go_ GUARDED_BY(mutex_) = false;  // since the last start
  std::chrono::nanoseconds last_start_ GUARDED_BY(mutex_){0};
  std::chrono::nanoseconds not_before_ GUARDED_BY(mutex_){0};  // after a failure
  int drains_ GUARDED_BY(mutex_) = 0;
  uint64_t rounds_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // none: work() is called
};

}  // namespace trainyard::launch
