// Starts the program of an init, stops it by signals, and reaps: what the init of one program and
// that of a reused container have in common.
//
// A signal that would end the program goes to the processes that it is meant for
// (process_tree.hpp), and to the program itself once none of these runs. So a program
// without a handler ends at once, and a script below shells and drivers gets the signal, and its
// time. A program that a signal ends leaves its children to the init: they get the signal in turn,
// and the program counts as running until they have ended.
//
// Threads: confined to one. Requires: this process is the first one of its PID namespace, or a
// subreaper.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "entry/process_tree.hpp"

namespace trainyard::entry {

// The interval at which a child that was sent a signal to end is looked at.
inline constexpr Duration kStopLookInterval = 100ms;
// The time for wrappers to forward the output and to end, after their script has ended.
inline constexpr Duration kWrappersEndMax = 2s;

// Processes that are reaped before signals and orders are read again: under a fork bomb, others end
// faster than they are reaped.
inline constexpr int kReapedAtOnce = 1000;

struct InitProgram {
  std::vector<std::string> arguments;    // arguments[0] is searched on PATH of `environment`
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string directory = ".";
  int output = -1;  // of both streams; -1: this process's own
};

class InitChild {
 public:
  // Starts it in a session of its own, with default signal handlers, /dev/null as its input, and no
  // descriptor of this process. Errors: not_found (with the OCI runtime's text), by errno.
  static Result<InitChild> start(InitProgram program);

  void signal(int number);
  // Reaps what has ended, orphans too. Returns the program's exit code once it has ended, and what
  // it left to the signal: 128+n when ended by signal n. Orphans may be left then.
  std::optional<int> reap();
  // True if reap() has left the program or others that may have ended: it is to be called again.
  bool has_more() const { return has_more_; }
  // True while look() is to be called every kStopLookInterval.
  bool stops() const { return stop_ != 0; }
  void look();

 private:
  explicit InitChild(pid_t program) : program_(program) {}
  void tell(pid_t process);
  void pass_on();

  pid_t program_;
  int stop_ = 0;               // the signal that is to end it; 0: none was sent
  std::set<pid_t> before_;     // children at that time: they are not what the program left
  std::set<pid_t> signalled_;  // processes that got the signal, each once
  int quiet_looks_ = 0;        // since one of them ran
  std::set<pid_t> heirs_;      // children that processes ended by the signal have left
  std::optional<int> code_;    // of the program
  bool has_more_ = false;
};

}  // namespace trainyard::entry
