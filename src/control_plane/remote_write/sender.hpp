// A Sender sends the points of a journal to one receiver, in a thread of its own.
//
// Points are sent at least once, in the order of the journal. The position is durable behind points
// that the receiver has accepted. A receiver that fails or hangs delays nothing else: the journal
// keeps its points up to the journal's limit, and the next try waits twice as long, up to 30 s. In
// memory are the points of one request. Of a request that the receiver rejects, halves are tried
// alone, so that only the samples that it does not take are left out.
//
// Threads: name(), counts(), wake() and end() from any. wait() and the destructor wait for a
// request in progress, which `post` limits; no further one is sent after end(). Errors: logged and
// counted. Lifetime: the arguments outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "observe/point_journal.hpp"
#include "remote_write/batch.hpp"

namespace trainyard::remote_write {

// Sends a request's body, and returns the status of HTTP. Errors: there was no answer.
using Post = std::function<Result<int>(const std::string& body)>;

// Returns the body of a request of remote write.
std::string remote_write_body(const std::vector<TimeSeries>& series);

struct SenderSettings {
  std::string name;          // of the receiver: the reader of the journal
  size_t points_max = 2000;  // of one request, as Prometheus' default
  Duration interval = 1s;    // between two looks at an empty journal
  std::function<std::string(const std::vector<TimeSeries>&)> encode = remote_write_body;
};

struct SenderCounts {
  std::atomic<uint64_t> samples{0};   // that the receiver has accepted
  std::atomic<uint64_t> requests{0};  // that the receiver has accepted
  std::atomic<uint64_t> failures{0};  // requests without an answer, or to be sent again
  std::atomic<uint64_t> left_out{0};  // older than those sent before, or rejected
  std::atomic<uint64_t> lost{0};      // that left the journal unread
};

class Sender {
 public:
  Sender(observe::PointJournal& journal, NameSeries name_series, Post post,
         SenderSettings settings);
  ~Sender();
  Sender(const Sender&) = delete;

  const std::string& name() const { return settings_.name; }
  const SenderCounts& counts() const { return counts_; }
  // Looks at the journal now.
  void wake();
  // Tells the thread to end, and does not wait for it: several senders then end at the same time.
  void end();
  // Waits for the thread. Requires: end() was called. Called by one thread.
  void wait();

 private:
  void work();
  // Sends the next points. False: there were none, or the sender stops. Errors: those of reading
  // the journal; no point was taken from it then.
  Result<bool> send_next();
  // Stores the position until that succeeds. False: the sender stops.
  bool advance(uint64_t position);
  // Sends until all is accepted or left out. False: the sender stops.
  bool send_all(std::vector<TimeSeries> series);
  bool is_stopping();
  // Sends until the receiver has judged. Nothing: the sender stops.
  std::optional<Outcome> send(const std::vector<TimeSeries>& series);
  // True if the sender stops.
  bool rest(Duration at_most, bool until_woken);

  observe::PointJournal& journal_;
  BatchMaker maker_;  // used by the thread only
  const Post post_;
  const SenderSettings settings_;
  SenderCounts counts_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool woken_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace trainyard::remote_write
