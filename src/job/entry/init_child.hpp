// Starts the program of an init, stops it by signals, and reaps. The init of one program and the
// init of a reused container share this class.
//
// A stop signal goes to the processes below the program that handle it (process_tree.hpp), and to
// the program itself once none of these runs. So a program without a handler ends at once, and a
// script below shells and drivers gets the signal and its grace period. The init inherits the
// children of a program that a signal ends: they get the signal as well, and the program counts as
// running until they have ended.
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

// The interval of checks after a stop signal was sent.
inline constexpr Duration kStopCheckInterval = 100ms;
// The time in which wrappers must forward the output and end, after their script has ended.
inline constexpr Duration kWrappersEndMax = 2s;

// The number of processes that are reaped before signals and orders are read again: under a fork
// bomb, processes end faster than they are reaped.
inline constexpr int kReapedAtOnce = 1000;

struct InitProgram {
  std::vector<std::string> arguments;    // arguments[0] is searched on PATH of `environment`
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string directory = ".";
  int output = -1;  // of both streams; -1: this process's own
};

class InitChild {
 public:
  // Starts the program in a session of its own, with default signal handlers, /dev/null as its
  // input, and no descriptors of this process. Errors: not_found (with the OCI runtime's text), by
  // errno.
  static Result<InitChild> start(InitProgram program);

  void signal(int number);
  // Reaps ended processes, including orphans. Returns the program's exit code (128+n for signal n)
  // once the program, and the children that it left after a stop signal, have ended. Other orphans
  // may be left then.
  std::optional<int> reap();
  // True if there may be more ended processes: reap() must be called again.
  bool has_more() const { return has_more_; }
  // True while continue_stop() must be called every kStopCheckInterval.
  bool stopping() const { return stop_ != 0; }
  void continue_stop();

 private:
  explicit InitChild(pid_t program) : program_(program) {}
  void send_stop(pid_t process);
  void signal_inherited();

  pid_t program_;
  int stop_ = 0;  // the stop signal; 0: none was sent
  // The children of this process when the signal was sent, which are not inherited later.
  std::set<pid_t> earlier_children_;
  std::set<pid_t> signalled_;  // processes that got the signal, each once
  int idle_checks_ = 0;        // since one of these ran
  std::set<pid_t> inherited_;  // children left by processes that the signal has ended
  std::optional<int> code_;    // of the program
  bool has_more_ = false;
};

}  // namespace trainyard::entry
