// Runs the processes that entry starts on this host: forwards their output as it arrives, keeps the
// end of the output, and reports the exit of each process once.
//
// Threads: confined to one. Errors: those of processes.hpp.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "entry/failure.hpp"
#include "entry/plan.hpp"
#include "entry/processes.hpp"

namespace trainyard::entry {

// Reads SIGCHLD, SIGTERM and SIGINT from a descriptor. The constructor blocks these signals, so it
// must run before any process is started.
class Signals {
 public:
  Signals();
  int descriptor() const { return file_.descriptor(); }
  // Reads the pending signals. Returns true if one of them requests a stop.
  bool take();

 private:
  os::File file_;
};

class Children {
 public:
  struct Kind {
    Start::Role role = Start::Role::program;
    int rank = 0;
    uint32_t number = 0;        // of a command line that another host requested; 0 for others
    bool signal_group = false;  // a stop signal goes to the whole group instead of the process
    bool whole_lines = false;   // forward whole lines only: other processes write to the same log
    std::function<void(size_t bytes)> on_output;  // called with the bytes read from either stream
    // Changes each line of the output, including its newline, before it is forwarded.
    std::function<std::string(std::string_view)> change_line;
  };
  struct Exit {
    Kind kind;
    int code = 0;
    Printed printed;
    std::string command;  // for messages
  };

  // Starts a process and reads its standard output and standard error.
  Result<void> start(Command command, Kind kind);
  bool empty() const { return children_.empty(); }

  void add_waits(std::vector<pollfd>& waits) const;
  // Forwards the output that has arrived.
  void pump();
  // Returns the processes that have ended since the last call. Also reaps orphans, which this
  // process inherits.
  std::vector<Exit> reap();
  // Sends SIGTERM to each process, or to its group if its kind says so. Once to each: a second
  // signal would interrupt a handler that saves a checkpoint.
  void request_end();
  // Sends SIGKILL to every group.
  void kill();

 private:
  struct Child {
    Kind kind;
    Running running;
    Printed printed;
    std::string partial_line, command;
    bool requested_end = false;
  };
  void forward(Child& child, bool to_the_end);
  void forward_output(Child& child, bool to_the_end);
  static std::string whole_lines(Child& child, std::string text, bool at_the_end);

  std::map<pid_t, Child> children_;
};

}  // namespace trainyard::entry
