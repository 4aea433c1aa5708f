// Finds the processes below an init that must get a stop signal.
//
// A program is often wrapped: by a shell, or by a driver that starts the script and forwards its
// output. The signal would end a wrapper without a handler; its script would lose its output, or be
// killed with it. So on each path down the tree, the signal goes to the first process that handles
// it. A process whose children are copies of itself or Python multiprocessing workers is not a
// wrapper: only the parent gets the signal.
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
  // Adds the processes at and below `root` that handle the signal and are not below another such
  // process. Adds none if no process handles the signal; then it goes to `root`.
  void add_handlers(pid_t root, int signal, std::set<pid_t>& handlers) const;

 private:
  std::multimap<pid_t, pid_t> children_;  // by parent
};

}  // namespace trainyard::entry
