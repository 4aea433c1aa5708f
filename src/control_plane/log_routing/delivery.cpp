#include "log_routing/delivery.hpp"

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "log_routing/gzip.hpp"

namespace trainyard::log_routing {

std::string message_json(const Envelope& envelope) {
  Json events = Json::array();
  for (const auto& [id, event] : envelope.events)
    events.push_back(
        {{"id", id}, {"timestamp", to_milliseconds(event.at)}, {"message", event.message}});
  return dump({{"messageType", "DATA_MESSAGE"},
               {"owner", envelope.owner},
               {"logGroup", envelope.group},
               {"logStream", envelope.stream},
               {"subscriptionFilters", Json::array({envelope.filter})},
               {"logEvents", std::move(events)}});
}

std::string encode_message(const Envelope& envelope) {
  return dump({{"awslogs", {{"data", to_base64(gzip(message_json(envelope)))}}}});
}

Delivery::Delivery(Webhook webhook, Post post, Clock& clock, DeliverySettings settings)
    : webhook_(std::move(webhook)),
      post_(std::move(post)),
      clock_(clock),
      settings_(settings),
      thread_([this] { work(); }) {}

Delivery::~Delivery() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Delivery::add(std::string message) {
  {
    const MutexLock lock(mutex_);
    if (queue_bytes_ + message.size() <= settings_.queue_bytes_max) {
      queue_bytes_ += message.size();
      queue_.push_back(std::move(message));
      changed_.notify_all();
      return;
    }
    ++counts_.dropped;
  }
  report_drop("the queue of the webhook is full");
}

DeliveryCounts Delivery::counts() {
  const MutexLock lock(mutex_);
  return counts_;
}

bool Delivery::drain(Duration at_most) {
  MutexLock lock(mutex_);
  return changed_.wait_for(lock, at_most,
                           [&]() REQUIRES(mutex_) { return queue_.empty() && !busy_; });
}

void Delivery::work() {
  for (;;) {
    std::string message;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [&]() REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      message = std::move(queue_.front());
      queue_.pop_front();
      queue_bytes_ -= message.size();
      busy_ = true;
    }
    const bool delivered = deliver(message);
    const MutexLock lock(mutex_);
    ++(delivered ? counts_.delivered : counts_.dropped);
    busy_ = false;
    changed_.notify_all();
  }
}

bool Delivery::deliver(const std::string& message) {
  Duration pause = settings_.first_pause;
  std::string why;
  for (int attempt = 1;; ++attempt, pause *= 2) {
    const auto status = post_(webhook_, message);
    if (status && *status >= 200 && *status < 300) return true;
    why =
        status ? "the webhook returned status " + std::to_string(*status) : status.error().message;
    // A client error is final, except for timeouts (408) and rate limits (429).
    const bool final =
        status && *status >= 400 && *status < 500 && *status != 408 && *status != 429;
    if (final || attempt >= settings_.attempts_max) break;
    MutexLock lock(mutex_);
    if (changed_.wait_for(lock, pause, [&]() REQUIRES(mutex_) { return stopping_; })) break;
  }
  report_drop(why);
  return false;
}

void Delivery::report_drop(const std::string& why) {
  uint64_t dropped = 0;
  {
    const MutexLock lock(mutex_);
    const auto now = clock_.monotonic();
    if (now < report_at_) return;
    report_at_ = now + settings_.report_interval;
    dropped = std::max<uint64_t>(counts_.dropped, 1);
  }
  log(Level::warning, "log_routing", "dropped messages of a subscription filter",
      {{"webhook", webhook_.name}, {"messages", std::to_string(dropped)}, {"why", why}});
}

}  // namespace trainyard::log_routing
