#include "objects/s3_client/part_sender.hpp"

#include <algorithm>
#include <utility>

namespace trainyard::objects {

PartSender::~PartSender() {
  {
    const MutexLock lock(mutex_);
    fail(cancelled("the upload was abandoned"));
  }
  join();
}

size_t PartSender::at_once(uint64_t part_bytes) {
  return std::clamp<uint64_t>(kBytesAtOnceMax / std::max<uint64_t>(1, part_bytes), 1,
                              kPartsAtOnceMax);
}

Result<void> PartSender::send(std::string& bytes) {
  {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() REQUIRES(mutex_) {
      return failure_.has_value() || unsent_ < at_once(bytes.size());
    });
    if (failure_) return *failure_;
    std::string spare;
    if (!spares_.empty()) {
      spare = std::move(spares_.back());
      spares_.pop_back();
    }
    queue_.push_back({++parts_, std::exchange(bytes, std::move(spare))});
    if (threads_.size() < ++unsent_) threads_.emplace_back([this] { work(); });
  }
  changed_.notify_all();
  return ok();
}

Result<std::vector<PartInfo>> PartSender::finish() {
  join();
  const MutexLock lock(mutex_);
  if (failure_) return *failure_;
  std::sort(sent_.begin(), sent_.end(),
            [](const PartInfo& a, const PartInfo& b) { return a.number < b.number; });
  return std::move(sent_);
}

void PartSender::work() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return ended_ || failure_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Part part = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto sent = send_(part.number, part.bytes, abandoned_);
    lock.lock();
    --unsent_;
    if (!sent) {
      fail(std::move(sent).error());
    } else {
      sent_.push_back(*std::move(sent));
      if (unsent_ + spares_.size() < at_once(part.bytes.size())) {
        part.bytes.clear();
        spares_.push_back(std::move(part.bytes));
      }
    }
    changed_.notify_all();
  }
}

// Keeps the first error.
void PartSender::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  abandoned_ = true;
  unsent_ -= queue_.size();
  queue_.clear();
}

void PartSender::join() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace trainyard::objects
