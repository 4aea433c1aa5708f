// Records the events of links for tests.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_safety.hpp"
#include "net/link.hpp"

namespace trainyard::net {

// Records the events of the links of one end, and waits for them.
class SeenLinks {
 public:
  LinkEvents events() {
    return {
        .opened =
            [this](const std::shared_ptr<Link>& link) {
              const MutexLock lock(mutex_);
              links_.push_back(link);
              changed_.notify_all();
            },
        .frame =
            [this](const std::shared_ptr<Link>& link, std::string frame) {
              {
                const MutexLock lock(mutex_);
                if (closed_.contains(link.get())) late_++;
                bytes_ += frame.size();
                if (echoes)
                  echoed_++;
                else
                  frames_.push_back(frame);
                changed_.notify_all();
              }
              if (echoes) link->send(std::move(frame));
            },
        .closed =
            [this](const std::shared_ptr<Link>& link, Error why) {
              const MutexLock lock(mutex_);
              if (closed_.contains(link.get())) late_++;
              closed_.emplace(link.get(), why);
              links_seen_closed_.push_back(link);
              changed_.notify_all();
            },
    };
  }

  bool wait_for_links(size_t count) {
    return wait([&]() REQUIRES(mutex_) { return links_.size() >= count; });
  }
  bool wait_for_frames(size_t count) {
    return wait([&]() REQUIRES(mutex_) { return frames_.size() >= count; });
  }
  bool wait_for_closed(size_t count) {
    return wait([&]() REQUIRES(mutex_) { return closed_.size() >= count; });
  }

  std::shared_ptr<Link> link(size_t i = 0) {
    const MutexLock lock(mutex_);
    return links_.at(i);
  }
  std::vector<std::string> frames() {
    const MutexLock lock(mutex_);
    return frames_;
  }
  // Returns the reason of the link that closed first.
  Error why() {
    const MutexLock lock(mutex_);
    return closed_.at(links_seen_closed_.at(0).get());
  }
  size_t link_count() {
    const MutexLock lock(mutex_);
    return links_.size();
  }
  size_t closed_count() {
    const MutexLock lock(mutex_);
    return closed_.size();
  }
  size_t echoed() {
    const MutexLock lock(mutex_);
    return echoed_;
  }
  // Returns the number of events of a link after closed().
  size_t late() {
    const MutexLock lock(mutex_);
    return late_;
  }

  bool echoes = false;

 private:
  template <class Condition>
  bool wait(Condition condition) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, 60s, condition);
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::shared_ptr<Link>> links_ GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Link>> links_seen_closed_ GUARDED_BY(mutex_);
  std::vector<std::string> frames_ GUARDED_BY(mutex_);
  std::map<Link*, Error> closed_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  size_t echoed_ GUARDED_BY(mutex_) = 0;
  size_t late_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::net
