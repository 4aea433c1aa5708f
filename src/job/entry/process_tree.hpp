// Finds, below an init, the processes that a stop signal is meant for.
//
// A program is often wrapped: by a shell, or by a driver that starts the script and forwards its
// output. A wrapper that has no handler would be ended by the signal, and its script would lose its
// output, or be killed with it. So the signal goes to the first processes on the way down that
// handle it. A process is not taken for a wrapper if a child of it is a copy of itself or a worker
// of Python's multiprocessing: those serve it, and it alone is meant.
//
// Threads: callable from anywhere. Errors: none: processes that end meanwhile are left out.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <vector>

namespace trainyard::entry {

class ProcessTree {
 public:
  // Reads the children of every process from /proc.
  static ProcessTree read();

  std::vector<pid_t> children_of(pid_t process) const;
  // Adds the processes from `root` downwards that handle the signal and are not below another one
  // that does. None: the signal is meant for `root`.
  void find_handlers(pid_t root, int signal, std::set<pid_t>& handlers) const;

 private:
  std::multimap<pid_t, pid_t> children_;  // by parent
};

}  // namespace trainyard::entry
