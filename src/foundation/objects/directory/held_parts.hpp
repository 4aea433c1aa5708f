// HeldParts keeps the parts of an object on the disk while a reader reads them, even if the object
// is replaced or removed meanwhile.
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
  // `discard` removes a directory of parts. It is called on the thread that drops the directory or
  // that releases it last.
  explicit HeldParts(std::function<void(const std::string& path)> discard)
      : discard_(std::move(discard)) {}

  // The directory is kept until the Hold and all copies of it are destroyed.
  using Hold = std::shared_ptr<void>;
  Hold hold(const std::string& path);
  // Removes the directory, now or when the last hold on it ends. Does nothing if it is absent.
  void drop(const std::string& path);

 private:
  struct Entry {
    int holders = 0;
    bool dropped = false;
  };
  void release(const std::string& path);

  const std::function<void(const std::string& path)> discard_;
  Mutex mutex_;
  std::map<std::string, Entry> entries_ GUARDED_BY(mutex_);  // by path; held directories only
};

}  // namespace trainyard::objects
