// NetworkStore has the network resources of each region: it reads them from the records of the
// ledger, and changes them.
//
// Threads:  call from anywhere. change() waits for the commit, so it must not run on the thread
//           that commits.
// Errors:   of change(): those of the change, and control's.
// Lifetime: control and random outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "control/control.hpp"
#include "ec2/networks.hpp"

namespace trainyard::api::ec2 {

class NetworkStore {
 public:
  NetworkStore(control::Control& control, Random& random, std::string account);

  // Returns the resources of the region; never nullptr.
  std::shared_ptr<const Networks> snapshot(const std::string& region) const;

  // Runs `edit` on a copy of the snapshot and makes the result durable. Repeats both if another
  // writer changed records meanwhile.
  Result<void> change(const std::string& region,
                      const std::function<Result<void>(Networks&, const MakeId&)>& edit);

 private:
  struct Joined {
    std::shared_ptr<const domain::Records> records;
    std::shared_ptr<const Networks> networks;
  };
  std::shared_ptr<const Networks> join(const std::string& region,
                                       const domain::Records& records) const;

  control::Control& control_;
  Random& random_;
  const std::string account_;

  Mutex changing_;  // held by one change() at a time

  mutable Mutex mutex_;
  mutable std::map<std::string, Joined> by_region_ GUARDED_BY(mutex_);
  // invalid records, each logged once
  mutable std::set<domain::RecordKey> set_aside_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::api::ec2
