// Wakes a thread that waits on descriptors.
//
// Threads: notify() from anywhere; the rest from the waiting thread. Errors: none; if there was no
// free descriptor, notify() has no effect, and the waiting thread wakes at its timeout.
#pragma once

namespace trainyard::os {

class Notifier {
 public:
  Notifier();
  ~Notifier();
  Notifier(const Notifier&) = delete;
  void notify();
  // Readable after notify(), until cleared.
  int descriptor() const { return descriptor_; }
  void clear();

 private:
  int descriptor_;
};

}  // namespace trainyard::os
