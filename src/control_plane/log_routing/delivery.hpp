// Delivers messages of subscription filters to one webhook, from a thread of its own.
//
// A webhook that hangs or fails holds up nothing: its queue is limited, a message is tried a few
// times, and what cannot be delivered is dropped, counted and reported in the server's log.
//
// Threads: callable from anywhere; the destructor waits for a request in progress.
// Lifetime: the clock outlives it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "log_routing/targets.hpp"
#include "observe/logs.hpp"

namespace trainyard::log_routing {

// Posts a JSON body, and returns the status. It must give up after some seconds, and must not
// follow redirects: only the configuration chooses where requests go.
using Post = std::function<Result<int>(const Webhook& webhook, const std::string& body)>;

struct DeliverySettings {
  size_t queue_bytes_max = 16 << 20;  // of one webhook
  int attempts_max = 4;
  Duration first_pause = 1s;       // before the second attempt; doubles
  Duration report_interval = 60s;  // between lines about dropped messages
};

// The message of AWS: JSON with the events, compressed by gzip, in base64, in
// {"awslogs": {"data": ".."}}.
struct Envelope {
  std::string owner, group, stream, filter;
  std::vector<std::pair<std::string, observe::LogEvent>> events;  // with their ids
};
std::string message_of(const Envelope& envelope);
// {"messageType": "DATA_MESSAGE", ..}, before it is compressed.
std::string document_of(const Envelope& envelope);

struct DeliveryCounts {
  uint64_t delivered = 0, dropped = 0;  // messages
};

class Delivery {
 public:
  Delivery(Webhook webhook, Post post, Clock& clock, DeliverySettings settings = {});
  ~Delivery();
  Delivery(const Delivery&) = delete;

  // Drops the message if the queue is full.
  void add(std::string message);
  DeliveryCounts counts();
  // Waits until the queue is empty and no request is in progress, for at most that time.
  bool drain(Duration at_most);

 private:
  void work();
  bool deliver(const std::string& message);  // false: it was dropped
  void report_drop(const std::string& why);

  const Webhook webhook_;
  const Post post_;
  Clock& clock_;
  const DeliverySettings settings_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::string> queue_ GUARDED_BY(mutex_);
  size_t queue_bytes_ GUARDED_BY(mutex_) = 0;
  bool busy_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  DeliveryCounts counts_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds report_at_ GUARDED_BY(mutex_){};
  std::thread thread_;  // last: it uses the members above
};

}  // namespace trainyard::log_routing
