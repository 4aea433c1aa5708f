// Keeps the parts of an object on the disk while a reader reads them, also when the object is
// replaced or removed.
//
// Threads: callable from anywhere. Lifetime: outlives the results of hold().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/thread_safety.hpp"

namespace trainyard::objects {

class HeldParts {
 public:
  // `discard` removes a directory of parts; it is called on the thread that drops it or that
  // releases it last.
  explicit HeldParts(std::function<void(const std::string& path)> discard)
      : discard_(std::move(discard)) {}

  // The directory stays until this and all copies of it are destroyed.
  using Hold = std::shared_ptr<void>;
  Hold hold(const std::string& path);
  // Removes the directory, now or when the last hold on it ends. Harmless when absent.
  void drop(const std::string& path);

 private:
  struct Entry {
    int holders = 0;
    bool dropped = false;
  };
  void release(const std::string& path);

  const std::function<void(const std::string& path)> discard_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);  // the held ones
};

}  // namespace trainyard::objects
