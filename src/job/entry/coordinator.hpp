// Decides on the leading host when a distribution's hosts start, and how the job ends: the first error is kept,
// wherever it happened.
//
//   waiting --all joined--> running --all done-----------------------> ended, code 0
//                              |----one failed, a moment passed-------> ended, its code and text
//                              |----one left without a word, patience-> ended, code 1
//
// A host that is lost is the platform's to judge (it may start the job again elsewhere), so that is waited for,
// also when the loss makes ranks on other hosts fail.
//
// Threads: confined to one. Time is what the caller passes in.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "entry/frames.hpp"

namespace trainyard::entry {

// What one rank's end does to others arrives within this: who else is lost is known then.
inline constexpr std::chrono::milliseconds kVerdictDelay{300};
// The platform notices a lost host and ends this one well within this.
inline constexpr std::chrono::seconds kLostPatience{60};

class Coordinator {
 public:
  using Time = std::chrono::nanoseconds;  // of a monotonic clock

  explicit Coordinator(std::vector<std::string> hosts) : hosts_(std::move(hosts)) {}

  bool knows(const std::string& host) const;
  // True when with this host all are there, once.
  bool joined(const std::string& host);
  void done(const std::string& host);
  void failed(const std::string& host, const Failed& failure, Time now);
  void lost(const std::string& host, Time now);

  // How it ends, once that is certain. The same answer for ever after.
  const std::optional<End>& end(Time now);
  // When to ask again at the latest.
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
