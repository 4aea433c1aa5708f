// Which process, for ever: its number may be another's tomorrow, its number and start time may not.
//
// And how to find processes that nobody remembers: by a mark in their environment, which their children
// inherit.
//
// Threads: callable from anywhere. Errors: denied; unavailable (it does not end).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace trainyard::os {

struct ProcessIdentity {
  pid_t process = -1;
  uint64_t started = 0;  // clock ticks since the machine's start
  bool operator==(const ProcessIdentity&) const = default;
};

// Nothing when there is no such process, or only its exit status is left.
std::optional<ProcessIdentity> identify(pid_t process);
// This process. Who has a PID namespace of his own is known to others by another number than to himself: the one that
// /proc shows before he mounts his own, and then remembers. Requires of remembering: no other threads.
std::optional<ProcessIdentity> own_identity();
void remember_own_identity();
bool is_alive(const ProcessIdentity& identity);
// The same for who asks again and again: by a descriptor of the process, where is_alive() reads /proc. Copies share it.
// Threads: confined to one.
class ProcessWatch {
 public:
  ProcessWatch() = default;  // of nobody
  explicit ProcessWatch(const ProcessIdentity& identity);
  bool is_alive() const;

 private:
  ProcessIdentity identity_;
  std::shared_ptr<File>
      process_;  // the last copy closes it; nothing: it could not be opened, and /proc is asked
};
// SIGKILL, and waits until it is gone. Harmless when it is.
Result<void> kill_and_wait(const ProcessIdentity& identity, Duration at_most);

struct MarkedProcess {
  ProcessIdentity identity;
  std::string value;
};
// All processes (but ourselves) whose environment at their start had a variable of that name.
std::vector<MarkedProcess> find_marked(const std::string& name);

}  // namespace trainyard::os
