// Wakes a thread that waits on descriptors.
//
// Threads: ring() from anywhere; the rest from the one that waits. Errors: none; without a descriptor left it is
// silent, and who waits wakes when his time is over.
#pragma once

namespace trainyard::host {

class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  void ring();
  // Readable once it was rung, until cleared.
  int descriptor() const { return descriptor_; }
  void clear();

 private:
  int descriptor_;
};

}  // namespace trainyard::host
