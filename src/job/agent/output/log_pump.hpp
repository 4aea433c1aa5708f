// Reads the output of a host's processes, and passes it on as batches of lines and metric points.
//
// The pipe is always read, so a process never waits for the server, however much it prints (the
// spool drops the oldest lines beyond its limit). An incomplete line is sent after kPartialLineMax.
//
// Threads: one of its own; finish() and last_output() are called on one other thread. Lifetime: the
// constructor's arguments must outlive it; destruction ends the reading.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "agent/output/metric_matcher.hpp"
#include "agent/report/facts.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace trainyard::agent {

// A batch is sent when it reaches this size, or its oldest line this age: small enough to follow a
// job live, large enough that heavy output takes few messages.
inline constexpr size_t kBatchBytesMax = 512 << 10;
// A point is little larger than its name (255 bytes), and forty regexes may match every line.
inline constexpr size_t kBatchPointsMax = 10'000;
inline constexpr Duration kBatchAgeMax = 200ms;
inline constexpr Duration kPartialLineMax = 1s;
// The output that is kept for the failure reason of a process without a failure file: a traceback
// of the usual depth, and what launchers print after it.
inline constexpr size_t kLastOutputBytesMax = 16 << 10;

struct Pipe {
  os::File read_end;
  os::File write_end;
};
Result<Pipe> make_pipe();

class LogPump {
 public:
  LogPump(os::File read_end, const MetricMatcher& metrics, Facts& facts, Clock& clock);
  ~LogPump();

  // Waits until all writers have closed the pipe and their output was sent, or until `at_most` has
  // passed. Output after that is not read.
  void finish(Duration at_most);
  // Returns the last lines, oldest first, at most kLastOutputBytesMax.
  std::string last_output() const;
  // Returns the number of bytes that the processes have printed so far. From any thread.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  void loop();
  void keep_last(const std::vector<std::string>& lines);

  const os::File read_end_;
  const MetricMatcher& metrics_;
  Facts& facts_;
  Clock& clock_;
  Pipe stop_;  // closing its write end ends the loop

  std::atomic<uint64_t> bytes_read_ = 0;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::deque<std::string> last_lines_ GUARDED_BY(mutex_);
  size_t last_bytes_ GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace trainyard::agent
