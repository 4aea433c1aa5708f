// WatchPlan decides the next request for a resource: a list, or a watch that resumes after the last
// known version; and the pause before it.
//
// A watch is resumed at once when its API server has ended it at its timeout, and after a pause
// when its connection broke. It resumes after the last event or bookmark. A list replaces it when
// the API server no longer knows the changes after that version (410), sends an error or a line
// that cannot be read, rejects the watch, or accepts several in a row that end at once.
//
// Pauses double from kPauseMin to kPauseMax. They begin again at 0 after a watch that has lasted
// for kStableAfter, which an API server that sends an event and then an error never reaches.
//
// Threads: confined to one. Errors: none.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::launch {

class WatchPlan {
 public:
  static constexpr Duration kPauseMin = 250ms;
  // A restarted API server is noticed within this time.
  static constexpr Duration kPauseMax = 10s;
  static constexpr Duration kStableAfter = 5s;
  // Watches in a row that fail before a list replaces them: some proxies answer requests, but break
  // streams.
  static constexpr uint32_t kFailedWatchesMax = 4;
  // The timeouts of watches: a dead connection is noticed then at the latest. Each watch that ends
  // costs one request.
  static constexpr Duration kTimeoutMin = 90s;
  static constexpr Duration kTimeoutMax = 120s;

  // Returns true if the next request is a list, false if it is a watch.
  bool lists() const { return lists_; }
  // The version after which the next watch begins. Requires: !lists().
  const std::string& version() const { return version_; }

  // Record what has happened.
  void listed(const std::string& version);
  void list_failed();
  // An event or bookmark was read.
  void received(const std::string& version) { version_ = version; }
  // The watch has ended: by its API server, by an error of the request, or of its connection.
  void watch_ended(const Result<void>& how, Duration lasted);
  // The watch was ended, because what it sends has an error or cannot be read.
  void watch_failed(Duration lasted);
  // Only a list can tell the state (WatchedJobs::wants_list()).
  void list_next() { lists_ = true; }

  // Returns the pause before the next request. `random`: any number; pauses of several resources
  // and servers then differ.
  Duration pause(uint64_t random) const;
  // Returns the timeout for the next watch.
  static Duration timeout(uint64_t random);
  // Returns the number of failures since the last stable watch.
  uint32_t failures() const { return failures_; }

 private:
  // Counts an ended watch, which has failed or not.
  void count(bool failed, Duration lasted);

  bool lists_ = true;
  std::string version_;
  uint32_t failures_ = 0;
  uint32_t failed_watches_ = 0;  // since the last list or stable watch
};

}  // namespace trainyard::launch
