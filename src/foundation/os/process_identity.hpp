// ProcessIdentity identifies a process forever: a number may be reused, but a number together with
// a start time is not.
//
// find_marked() finds processes without a record, by a mark in their environment, which their
// children inherit.
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

// Returns nullopt if the process does not exist or is a zombie.
std::optional<ProcessIdentity> identify(pid_t process);
// Returns the identity of this process, as other processes of the machine see it. A process that is
// in its own PID namespace must call remember_own_identity() before it mounts a new /proc, which
// shows other numbers.
std::optional<ProcessIdentity> own_identity();
// Requires: this process has no other threads.
void remember_own_identity();
bool is_alive(const ProcessIdentity& identity);
// Returns true for a process that start_detached() started, and false for the processes that it
// starts, unless they start a new session. False if the process has ended.
bool leads_session(const ProcessIdentity& identity);
// ProcessWatch repeats is_alive() cheaply: it polls a descriptor of the process instead of reading
// /proc. Copies share the descriptor. Threads: confined to one.
class ProcessWatch {
 public:
  ProcessWatch() = default;  // watches no process
  explicit ProcessWatch(const ProcessIdentity& identity);
  bool is_alive() const;

 private:
  ProcessIdentity identity_;
  // closed with the last copy; null: it could not be opened, and /proc is read
  std::shared_ptr<File> process_;
};
// Sends SIGKILL and waits for the end of the process. Does nothing if it has ended.
Result<void> kill_and_wait(const ProcessIdentity& identity, Duration at_most);

struct MarkedProcess {
  ProcessIdentity identity;
  std::string value;
};
// Returns all other processes whose environment had a variable with this name when they started.
// Processes of jobs, which choose their environment, are excluded: those in other user namespaces
// and those in containers.
std::vector<MarkedProcess> find_marked(const std::string& name);

}  // namespace trainyard::os
