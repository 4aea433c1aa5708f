// Runs the shells that users opened on this host: each is a process in the container, its bytes
// carried to and from the server by frames (wire/shell.hpp), never spooled. They end with the link
// over which they were opened, with the container, and after kShellIdleMax without a byte.
//
// Threads: open(), data() and close_all() from the link's thread, and do not block; each shell has
// a thread of its own. Lifetime: the constructor's arguments outlive it; destruction ends all of
// them and joins.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "containers/exec.hpp"
#include "wire/messages.hpp"
#include "wire/shell.hpp"

namespace trainyard::agent {

inline constexpr size_t kShellsMax = 8;  // on one host at once: enough for people
// without a byte in either direction: the user has left
inline constexpr Duration kShellIdleMax = 4h;

class Shells {
 public:
  using Start =
      std::function<Result<std::unique_ptr<containers::ExecProcess>>(const wire::OpenShell&)>;
  using Send = std::function<void(const wire::Message&)>;

  Shells(Start start, Send send, Clock& clock);
  ~Shells();

  void open(const wire::OpenShell& order);
  void data(const wire::ShellData& data);
  // Called when their link is gone, or the container ends.
  void close_all();

 private:
  struct Shell;
  void run(const std::shared_ptr<Shell>& shell);
  void say(uint64_t shell, const wire::ShellFrame& frame);
  void collect() REQUIRES(mutex_);

  const Start start_;
  const Send send_;
  Clock& clock_;
  Mutex mutex_;
  // A shell is shared with its thread, which frees it last.
  std::map<uint64_t, std::shared_ptr<Shell>> shells_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::agent
