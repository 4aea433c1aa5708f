// Where agents call in: the server's end of every agent's link. State facts go to control's writer and are acknowledged
// once the ledger has them; log lines and metric points go straight to observe and are acknowledged once durable there;
// orders go down when control or a Welcome asks for them.
//
// Threads: the events may come from any of the links' threads. Lifetime: must outlive the listener that feeds it.
#pragma once

#include <functional>
#include <memory>

#include "base/time.hpp"
#include "control/control.hpp"
#include "host/link.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "wire/messages.hpp"

namespace trainyard::control {

// Temporary keys of the job's role, for one attempt. Made by api's auth; handed in by main.
using IssueCredentials =
    std::function<wire::Credentials(const domain::Job& job, const domain::AttemptId& attempt, Instant now)>;

class Agents {
 public:
  virtual ~Agents() = default;
  // What to give to host::listen_links.
  virtual host::LinkEvents events() = 0;
};

}  // namespace trainyard::control
