// Decides when the hosts of a distribution start and how the job ends; runs on the leading host.
// The first error of any host is the job's.
//
//   waiting --all joined--> running --all done-------------------------> ended, code 0
//                              |----one failed, kVerdictDelay passed---> ended, its code and text
//                              |----one lost, kLostTimeout passed------> ended, code 1
//
// The platform decides about a lost host: it may start the job again elsewhere. So the coordinator
// waits for the platform, also when the loss makes ranks on other hosts fail.
//
// Threads: confined to one. The caller passes the time.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "entry/frames.hpp"

namespace trainyard::entry {

// The time from a failure to the verdict. Within it the coordinator learns whether a host was lost,
// which makes ranks on other hosts fail.
inline constexpr std::chrono::milliseconds kVerdictDelay{300};
// The platform detects a lost host, and ends this one, well within this time.
inline constexpr std::chrono::seconds kLostTimeout{60};

class Coordinator {
 public:
  using Time = std::chrono::nanoseconds;  // of a monotonic clock

  explicit Coordinator(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  bool is_member(const std::string& host) const;
  // Adds a host. Returns true when it is the last one to join; false also if it has joined before.
  bool joined(const std::string& host);
  void done(const std::string& host);
  void failed(const std::string& host, const Failed& failure, Time now);
  void lost(const std::string& host, Time now);

  // Returns how the job ends, once that is decided. It never changes afterwards.
  const std::optional<End>& end(Time now);
  // Returns the time at which end() must be called again; nullopt: none.
  std::optional<Time> next_deadline() const;

 private:
  std::vector<std::string> hosts_;
  std::set<std::string> joined_, done_;
  std::optional<End> first_failure_;
  std::optional<std::string> lost_;
  Time failure_due_{}, lost_due_{};
  std::optional<End> end_;
};

}  // namespace trainyard::entry
