// Decides on the leading host when a distribution's hosts start, and how the job ends: it keeps the
// first error of any host.
//
//   waiting --all joined--> running --all done-------------------------> ended, code 0
//                              |----one failed, kVerdictDelay passed---> ended, its code and text
//                              |----one lost, kLostTimeout passed------> ended, code 1
//
// The platform decides about a lost host (it may start the job again elsewhere), so the coordinator
// waits for that, also when the loss makes ranks on other hosts fail.
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

// The effects of one rank's end on others arrive within this: by then it is known whether a host
// was lost.
inline constexpr std::chrono::milliseconds kVerdictDelay{300};
// The platform notices a lost host and ends this one well within this.
inline constexpr std::chrono::seconds kLostTimeout{60};

class Coordinator {
 public:
  using Time = std::chrono::nanoseconds;  // of a monotonic clock

  explicit Coordinator(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  bool knows(const std::string& host) const;
  // True when all hosts have joined with this one, each once.
  bool joined(const std::string& host);
  void done(const std::string& host);
  void failed(const std::string& host, const Failed& failure, Time now);
  void lost(const std::string& host, Time now);

  // Returns how the job ends, once that is certain. It never changes afterwards.
  const std::optional<End>& end(Time now);
  // The latest time of the next call.
  std::optional<Time> due() const;

 private:
  std::vector<std::string> hosts_;
  std::set<std::string> joined_, done_;
  std::optional<End> first_failure_;
  std::optional<std::string> lost_;
  Time failure_due_{}, lost_due_{};
  std::optional<End> end_;
};

}  // namespace trainyard::entry
