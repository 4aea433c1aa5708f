// Notifier wakes a thread that waits on descriptors.
//
// Threads: notify() from anywhere; other functions from the waiting thread. Errors: none; if
// no descriptor was free, notify() has no effect, and the waiting thread wakes at its timeout.
#pragma once

#include "os/files.hpp"

namespace trainyard::os {

class Notifier {
 public:
  Notifier();
  void notify();
  // Returns a descriptor that is readable after notify(), until clear().
  int descriptor() const { return file_.descriptor(); }
  void clear();

 private:
  const File file_;
};

}  // namespace trainyard::os
