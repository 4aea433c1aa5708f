// A Sender has a thread that sends the points of a journal to one receiver.
//
// Points are sent at least once, in the order of the journal. After the receiver has accepted a
// request, the position behind its points is stored. A receiver that fails or hangs delays no other
// component: the journal keeps the points up to its limit, and each retry waits twice as long, up
// to 30 s. Only one request's points are held in memory. A rejected request is split in halves and
// retried, so that only the rejected samples are left out.
//
// Threads: call name(), counts(), wake() and end() from anywhere. wait() and the destructor wait
// for a request in progress, whose time `post` must limit; no request begins after end(). Errors:
// logged and counted. Lifetime: the constructor's arguments outlive it.
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

// Sends the body of a request, and returns the HTTP status. Errors: no response arrived.
using Post = std::function<Result<int>(const std::string& body)>;

// Returns the body of a remote-write request.
std::string remote_write_body(const std::vector<TimeSeries>& series);

struct SenderSettings {
  std::string name;          // the name of the receiver, and of the reader of the journal
  size_t points_max = 2000;  // points of one request; the default of Prometheus
  Duration interval = 1s;    // between two reads of an empty journal
  std::function<std::string(const std::vector<TimeSeries>&)> encode = remote_write_body;
};

struct SenderCounts {
  std::atomic<uint64_t> samples{0};   // samples that the receiver has accepted
  std::atomic<uint64_t> requests{0};  // requests that the receiver has accepted
  std::atomic<uint64_t> failures{0};  // requests without response, or with a temporary error
  std::atomic<uint64_t> left_out{0};  // samples older than those sent before, or rejected
  std::atomic<uint64_t> lost{0};      // points that the journal dropped before they were read
};

class Sender {
 public:
  Sender(observe::PointJournal& journal, NameSeries name_series, Post post,
         SenderSettings settings);
  ~Sender();
  Sender(const Sender&) = delete;

  const std::string& name() const { return settings_.name; }
  const SenderCounts& counts() const { return counts_; }
  // Makes the thread read the journal now.
  void wake();
  // Makes the thread end, without waiting for it, so that several senders can end at the same time.
  void end();
  // Waits for the thread. Requires: end() was called. Called by one thread.
  void wait();

 private:
  void work();
  // Sends the next points. Returns false if the journal is empty or the sender stops. Errors: those
  // of reading the journal; the position has not changed then.
  Result<bool> send_next();
  // Retries storing the position until it succeeds. Returns false if the sender stops.
  bool advance(uint64_t position);
  // Sends until each sample is accepted or left out. Returns false if the sender stops.
  bool send_all(std::vector<TimeSeries> series);
  bool is_stopping();
  // Sends until the receiver accepts or rejects the request. Returns nullopt if the sender stops.
  std::optional<Outcome> send(const std::vector<TimeSeries>& series);
  // Waits for this time, or until wake() is called. Returns true if the sender stops.
  bool pause_or_stop(Duration at_most, bool until_woken);

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
