// What the negotiator did, as browsers show it (chrome://tracing, Perfetto): a row a tensor, a
// block a phase.
//
// Threads: write() from the negotiator's thread, the others from one at a time.
// Errors:  unavailable, naming the file. A disk that fills up later ends the file early, not the
//          training.
// Limits:  kEventsMax in a file; further ones are left out, and the file says so.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "base/result.hpp"
#include "gradients/fusion/negotiator.hpp"

namespace trainyard::sdk {

class Timeline {
 public:
  ~Timeline() { stop(); }
  Result<void> start(const std::string& path, bool mark_cycles);
  void stop();
  void write(const gradients::Event& event);

  static constexpr uint64_t kEventsMax = 20'000'000;  // two gigabytes of text

 private:
  int row_of(const std::string& name);

  std::mutex mutex_;  // guards all below
  std::ofstream file_;
  bool mark_cycles_ = false;
  uint64_t events_ = 0;
  std::map<std::string, int> rows_;
};

}  // namespace trainyard::sdk
