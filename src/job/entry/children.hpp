// The processes that entry started on this host: what they print is passed on as it comes, the end of it is
// kept, and each one's end is told once.
//
// Threads: confined to one. Errors: those of processes.hpp.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "entry/plan.hpp"
#include "entry/processes.hpp"

namespace trainyard::entry {

// SIGCHLD, SIGTERM and SIGINT, taken from a descriptor. Blocks them: made before any process is started.
class Signals {
 public:
  Signals();
  int descriptor() const { return file_.descriptor(); }
  // Takes those that wait; true when one of them asks us to stop.
  bool take();

 private:
  os::File file_;
};

class Children {
 public:
  struct Kind {
    Start::Role role = Start::Role::program;
    int rank = 0;
    uint32_t number = 0;        // of a line that another host asked for; 0 for others
    bool signal_group = false;  // what is told to stop: the process, or all of its group
    bool whole_lines = false;   // of its output: others write to the same log
    // What to pass on for each line of its output, with its newline; none: its output is ours.
    std::function<std::string(std::string_view)> change_line;
  };
  struct Exit {
    Kind kind;
    int code = 0;
    std::string last_words;  // of its standard error
    std::string command;     // for people
  };

  // Standard error is caught; its output where kind says so.
  Result<void> start(Command command, Kind kind);
  bool empty() const { return children_.empty(); }

  void add_waits(std::vector<pollfd>& waits) const;
  // Passes on what they have printed.
  void pump();
  // Those that have ended since the last time; also collects strangers that were left to us.
  std::vector<Exit> reap();
  // SIGTERM to each process, or to its group where kind says so: once to each, since a handler that saves what it
  // has would be interrupted by the next.
  void ask_to_end();
  // SIGKILL to every group.
  void kill();

 private:
  struct Child {
    Kind kind;
    Running running;
    std::string last_words, partial_line, command;
    bool asked_to_end = false;
  };
  void pass_on(Child& child, bool to_the_end);
  void pass_on_output(Child& child, bool to_the_end);

  std::map<pid_t, Child> children_;
};

}  // namespace trainyard::entry
