// Notifier wakes a thread that waits on descriptors.
//
// Threads: notify() from anywhere; other functions from the waiting thread. Errors: none; if
// no descriptor was free, notify() has no effect, and the waiting thread wakes at its timeout.
#pragma once

namespace trainyard::os {

class Notifier {
 public:
  Notifier();
  ~Notifier();
  Notifier(const Notifier&) = delete;
  void notify();
  // Returns a descriptor that is readable after notify(), until clear().
  int descriptor() const { return descriptor_; }
  void clear();

 private:
  int descriptor_;
};

}  // namespace trainyard::os
