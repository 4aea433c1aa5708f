// Wakes a thread that waits on descriptors.
//
// Threads: notify() from anywhere; the rest from the one that waits. Errors: none; without a descriptor left it is
// silent, and who waits wakes when his time is over.
#pragma once

namespace trainyard::os {

class Notifier {
 public:
  Notifier();
  ~Notifier();
  Notifier(const Notifier&) = delete;
  void notify();
  // Readable once it was rung, until cleared.
  int descriptor() const { return descriptor_; }
  void clear();

 private:
  int descriptor_;
};

}  // namespace trainyard::os
