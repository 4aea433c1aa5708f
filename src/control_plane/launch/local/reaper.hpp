// NetworkReaper removes the networks of ended gangs in the background, one after another, and not while a
// gang starts.
//
// The kernel waits for all its readers whenever a port leaves a bridge, some 40 ms for a network of two hosts
// and as much again for the next one (eleven at once: 370 ms), and holds the lock that a starting gang's
// interfaces need as well. So networks are removed one at a time, with starts in between. They wait until
// starts have been quiet for a while; where one start follows another, one network goes after each: until the
// next start, the job has to run.
//
// Threads: callable from anywhere; works on a thread of its own, or in work(). Errors: a network that cannot be
// removed is logged and retried.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "networks/network.hpp"

namespace trainyard::launch {

// The timing of removals.
struct ReaperPace {
  // How long no gang must have started: longer than the gap between two jobs that follow each other.
  Duration quiet = 150ms;
  // Under continuous starts: after this time the network is removed all the same.
  Duration delay_max = 2s;
  // With so many networks waiting, starts are no longer waited for: each network holds addresses of the pool.
  size_t waiting_max = 64;
  // Removes one after the other. False where the kernel waits once for all: then a start does not let a
  // single one go, so that many go together.
  bool one_by_one = true;
};

class NetworkReaper {
 public:
  static constexpr Duration kRetryPause = 1s;

  using Remove = std::function<Result<void>(const std::vector<networks::PrivateNetwork>&)>;
  // Without a thread, all removals happen in work(), drain() and the destructor.
  explicit NetworkReaper(Clock& clock, Remove remove = networks::remove_networks, ReaperPace pace = {},
                         bool own_thread = true);
  ~NetworkReaper();  // pending removals are completed first

  // `then` is called, on the reaper's thread, once it is gone, and again after a pause as long as it fails:
  // until it has succeeded, the addresses are taken.
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
  // Returns once no removal is pending, or the last try has failed. All pending networks are removed at once.
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
  // Removes what is to go now. Returns false if that failed. Requires: lock holds mutex_, and something waits.
  bool round(std::unique_lock<std::mutex>& lock);
  // All are removed, regardless of starts. Requires: mutex_ is held.
  bool in_haste() const { return stopped_ || drains_ > 0; }
  // When to begin, by the monotonic clock, as far as is known now. Requires: mutex_ is held.
  std::chrono::nanoseconds due() const;

  Clock& clock_;
  const Remove remove_;
  const ReaperPace pace_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;                 // guarded by mutex_; a network stays until it is removed
  int starts_ = 0;                          // guarded by mutex_
  bool one_may_go_ = false;                 // guarded by mutex_; since the last start
  std::chrono::nanoseconds last_start_{0};  // guarded by mutex_
  std::chrono::nanoseconds not_before_{0};  // guarded by mutex_; after a failure
  int drains_ = 0;                          // guarded by mutex_
  uint64_t rounds_ = 0;                     // guarded by mutex_
  bool stopped_ = false;                    // guarded by mutex_
  std::thread thread_;                      // none: work() is called
};

}  // namespace trainyard::launch
