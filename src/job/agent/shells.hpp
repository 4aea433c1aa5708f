// Runs the shells that users opened on this host. Each shell is a process in the container; frames
// (wire/shell.hpp) carry its bytes to and from the server and are never spooled. A shell ends with
// the link over which it was opened, with the container, and after kShellIdleMax without a byte.
//
// Threads: open(), data() and close_all() are called on the link's thread and do not block; each
// shell has a thread of its own. Lifetime: the constructor's arguments outlive it; destruction ends
// all shells and joins their threads.
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

inline constexpr size_t kShellsMax = 8;  // on one host at once: enough for interactive use
// A shell ends after this time without a byte in either direction.
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
  // Called when the link is lost or the container ends.
  void close_all();

 private:
  struct Shell;
  void run(const std::shared_ptr<Shell>& shell);
  void send_frame(uint64_t shell, const wire::ShellFrame& frame);
  void join_ended() REQUIRES(mutex_);

  const Start start_;
  const Send send_;
  Clock& clock_;
  Mutex mutex_;
  // A shell is shared with its thread, which frees it last.
  std::map<uint64_t, std::shared_ptr<Shell>> shells_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::agent
