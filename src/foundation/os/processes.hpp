// Processes is an interface that starts, finds and ends processes that outlive their starter. It
// lets a simulator end the starter between any two of its steps.
//
// A module that must find its processes again after a crash takes a Processes in its constructor.
// The shipped programs pass MachineProcesses; sim/ and tests pass an implementation in memory.
//
// Threads: callable from anywhere. Errors: those of process.hpp and process_identity.hpp.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/process_identity.hpp"

namespace trainyard::os {

// A program that outlives its starter: start_detached() in process.hpp describes the members.
struct DetachedProgram {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // added to that of this process
  std::string log_file;
  bool own_pid_namespace = false;
  int input = -1;
};

class Processes {
 public:
  virtual ~Processes() = default;

  // Starts a program. If the process ends at once, its start time is 0.
  virtual Result<ProcessIdentity> start(const DetachedProgram& program) = 0;
  virtual bool is_alive(const ProcessIdentity& identity) = 0;
  // Returns true for a process that start() started, and false for the processes that it starts.
  virtual bool leads_session(const ProcessIdentity& identity) = 0;
  // Returns a function that repeats is_alive() cheaply, on one thread. It may outlive the
  // Processes.
  virtual std::function<bool()> watch(const ProcessIdentity& identity) = 0;
  // Kills the process and waits for its end. Does nothing if it has ended.
  virtual Result<void> kill_and_wait(const ProcessIdentity& identity, Duration at_most) = 0;
  // Returns all other processes whose environment had a variable with this name when they started.
  virtual std::vector<MarkedProcess> find_marked(const std::string& variable) = 0;
};

// MachineProcesses starts, finds and ends processes of this machine.
class MachineProcesses : public Processes {
 public:
  Result<ProcessIdentity> start(const DetachedProgram& program) override;
  bool is_alive(const ProcessIdentity& identity) override;
  bool leads_session(const ProcessIdentity& identity) override;
  std::function<bool()> watch(const ProcessIdentity& identity) override;
  Result<void> kill_and_wait(const ProcessIdentity& identity, Duration at_most) override;
  std::vector<MarkedProcess> find_marked(const std::string& variable) override;
};

}  // namespace trainyard::os
