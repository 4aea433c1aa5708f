// Identifies a process forever: its number may be reused, its number and start time together are
// not.
//
// Also finds processes without a record, by a mark in their environment, which their children
// inherit.
//
// Threads: callable from anywhere. Errors: denied; unavailable (the process does not end).
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

// Returns nothing when there is no such process, or only its exit status is left.
std::optional<ProcessIdentity> identify(pid_t process);
// Returns this process. A process with a PID namespace of its own has another number outside: the
// one that /proc shows before it mounts its own, which remember_own_identity() keeps. Requires of
// remembering: no other threads.
std::optional<ProcessIdentity> own_identity();
void remember_own_identity();
bool is_alive(const ProcessIdentity& identity);
// True for a process of start_detached(), and false for the processes that it starts, unless they
// begin a session of their own. False when it has ended.
bool leads_session(const ProcessIdentity& identity);
// Repeats is_alive() cheaply: by a descriptor of the process instead of /proc. Copies share it.
// Threads: confined to one.
class ProcessWatch {
 public:
  ProcessWatch() = default;  // watches no process
  explicit ProcessWatch(const ProcessIdentity& identity);
  bool is_alive() const;

 private:
  ProcessIdentity identity_;
  std::shared_ptr<File>
      process_;  // closed with the last copy; null: it could not be opened, and /proc is read
};
// Sends SIGKILL and waits for the end of the process. Harmless when it has ended.
Result<void> kill_and_wait(const ProcessIdentity& identity, Duration at_most);

struct MarkedProcess {
  ProcessIdentity identity;
  std::string value;
};
// Returns all processes (but this one) whose environment at their start had a variable of that
// name. Processes of jobs are left out, whatever their environment: those of other user namespaces,
// and those of containers.
std::vector<MarkedProcess> find_marked(const std::string& name);

}  // namespace trainyard::os
