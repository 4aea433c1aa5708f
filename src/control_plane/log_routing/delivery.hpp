// A Delivery has a queue and a thread that sends messages of subscription filters to one webhook.
//
// A webhook that hangs or fails delays no other component. Its queue is limited, and each message
// is sent at most attempts_max times. Messages that cannot be delivered are dropped, counted and
// reported in the server's log.
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

// Posts a JSON body, and returns the HTTP status. It must time out after some seconds, and must not
// follow redirects: only the configuration decides to which hosts requests are sent.
using Post = std::function<Result<int>(const Webhook& webhook, const std::string& body)>;

struct DeliverySettings {
  size_t queue_bytes_max = 16 << 20;  // for one webhook
  int attempts_max = 4;
  Duration first_pause = 1s;       // before the second attempt; doubles
  Duration report_interval = 60s;  // between two log lines about dropped messages
};

// An Envelope is the content of one message: the events of a stream that match a filter.
struct Envelope {
  std::string owner, group, stream, filter;
  std::vector<std::pair<std::string, observe::LogEvent>> events;  // with their ids
};
// Encodes a message as AWS does: {"awslogs": {"data": ".."}} with message_json() as gzip in base64.
std::string encode_message(const Envelope& envelope);
// Returns the JSON of a message before compression: {"messageType": "DATA_MESSAGE", ..}.
std::string message_json(const Envelope& envelope);

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
  // Waits for at most this time until the queue is empty and no request is in progress.
  bool drain(Duration at_most);

 private:
  void work();
  bool deliver(const std::string& message);  // returns false if the message was dropped
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
