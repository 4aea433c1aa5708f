// ShellTable connects the open shells of clients with the agents' links (see shells.hpp). Private
// to this module.
//
// Threads: callable from anywhere. `send` is called without a lock held and must not block.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "gateway/shells.hpp"
#include "wire/messages.hpp"
#include "wire/shell.hpp"

namespace trainyard::gateway {

class ShellTable {
 public:
  // Sends to the agent of a link. Returns false if the link has closed.
  using Send = std::function<bool(uint64_t link, const wire::Message&)>;

  ShellTable(Send send, Clock& clock);
  ~ShellTable();

  // Opens a shell over that link. Errors: exhausted.
  Result<std::unique_ptr<Shell>> open(uint64_t link, const ShellOrder& order);
  // Handles a frame of an agent. Errors: corrupt, if the agent breaks the protocol: the caller
  // closes its link.
  Result<void> from_agent(uint64_t link, const wire::ShellData& data);
  void link_closed(uint64_t link);

 private:
  class Open;
  struct State;
  void forget(uint64_t number);

  const Send send_;
  Clock& clock_;
  Mutex mutex_;
  uint64_t last_ GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<State>> states_
      GUARDED_BY(mutex_);  // shared with the Open of the same number
};

}  // namespace trainyard::gateway
