// Processes starts, finds and ends processes that outlive their starter, as an interface, so that a
// simulator can end the starter between any two of its steps.
//
// A module whose processes decide crash safety takes a Processes in its constructor. The shipped
// programs pass MachineProcesses; sim/ and tests pass one in memory.
//
// Threads: callable from anywhere. Errors: as process.hpp and process_identity.hpp.
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
  std::map<std::string, std::string> environment;  // added to ours
  std::string log_file;
  bool own_processes = false;
  int input = -1;
};

class Processes {
 public:
  virtual ~Processes() = default;

  // A process that has ended at once has the start time 0.
  virtual Result<ProcessIdentity> start(const DetachedProgram& program) = 0;
  virtual bool is_alive(const ProcessIdentity& identity) = 0;
  // True for a process of start(), and false for the processes that it starts.
  virtual bool leads_session(const ProcessIdentity& identity) = 0;
  // Returns a function that repeats is_alive() cheaply, on one thread. It may outlive the
  // Processes.
  virtual std::function<bool()> watch(const ProcessIdentity& identity) = 0;
  // Kills it and waits for its end. Harmless when it has ended.
  virtual Result<void> kill_and_wait(const ProcessIdentity& identity, Duration at_most) = 0;
  // Returns all processes (but this one) whose environment at their start had a variable of that
  // name.
  virtual std::vector<MarkedProcess> find_marked(const std::string& variable) = 0;
};

// The processes of this machine.
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
