// NamedLocks provides a mutex for each name. A mutex exists only while it is held or waited for. So
// the join of an upload's parts, which may take long, blocks only requests for the same upload.
//
// Threads: callable from anywhere. Lifetime: outlives the results of hold().
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/thread_safety.hpp"

namespace trainyard::objects {

class NamedLocks {
  struct Entry {
    Mutex mutex;
    int users = 0;  // guarded by NamedLocks::mutex_
  };

 public:
  class Hold {
   public:
    Hold(const Hold&) = delete;
    ~Hold() {
      entry_.mutex.unlock();
      locks_.release(name_);
    }

   private:
    friend class NamedLocks;
    Hold(NamedLocks& locks, std::string name, Entry& entry)
        : locks_(locks), name_(std::move(name)), entry_(entry) {
      entry_.mutex.lock();
    }
    NamedLocks& locks_;
    const std::string name_;
    Entry& entry_;
  };

  // Waits until no other thread holds the name.
  Hold hold(const std::string& name) {
    Entry* entry = nullptr;
    {
      const MutexLock lock(mutex_);
      auto& found = entries_[name];
      if (!found) found = std::make_unique<Entry>();
      ++found->users;
      entry = found.get();
    }
    return Hold(*this, name, *entry);
  }

 private:
  void release(const std::string& name) {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(name);
    if (--found->second->users == 0) entries_.erase(found);
  }

  Mutex mutex_;
  std::map<std::string, std::unique_ptr<Entry>> entries_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::objects
