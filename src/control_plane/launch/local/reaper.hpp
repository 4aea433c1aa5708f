// NetworkReaper removes the networks of ended gangs in the background, one after another, but not
// while a gang starts.
//
// Whenever a port leaves a bridge, the kernel waits for all its readers: some 40 ms for a network
// of two hosts, and as long again for the next one (eleven at once: 370 ms). Meanwhile it holds a
// lock that the interfaces of a starting gang need. So networks are removed one at a time, with
// starts in between. Removals wait until no gang has started for a while. Under continuous starts,
// one network is removed after each start, since the next start follows only after the job has run.
//
// Threads: callable from anywhere; removes on its own thread, or in work(). Errors: a network that
// cannot be removed is logged and retried.
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
  // The time without starts before removals begin: longer than the gap between consecutive jobs.
  Duration quiet = 150ms;
  // Under continuous starts a network is removed after this time in any case.
  Duration delay_max = 2s;
  // With more pending networks, removals no longer wait for starts: each network occupies addresses
  // of the pool.
  size_t waiting_max = 64;
  // True: networks are removed one by one. False, if the kernel waits only once for many: then a
  // start does not trigger a single removal, so that many are removed together.
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

  // Removes the network later. `then` is called on the reaper's thread once it is removed, and
  // again after a pause while it fails; until it has succeeded, the addresses stay in use.
  void take(networks::PrivateNetwork network, std::function<Result<void>()> then);
  // Calls `then` as take() does, without a network.
  void take_rest(std::function<Result<void>()> then);
  // A Start exists while a gang's network is made, and delays removals.
  class Start {
   public:
    explicit Start(NetworkReaper& reaper);
    ~Start();
    Start(const Start&) = delete;

   private:
    NetworkReaper& reaper_;
  };
  // Returns the networks whose addresses are still in use.
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
  // Removes the networks that are due. Returns false if that failed. Requires: a network waits.
  bool round() REQUIRES(mutex_);
  // Returns true if all networks are to be removed, regardless of starts.
  bool in_haste() const REQUIRES(mutex_) { return stopped_ || drains_ > 0; }
  // Returns when the next round begins, by the monotonic clock, if nothing else happens.
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
