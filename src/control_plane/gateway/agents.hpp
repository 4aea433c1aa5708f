// Agents is the server's end of all agent links. State facts go to control's writer and are
// acknowledged once they are in the ledger; log lines and metric points go straight to observe and
// are acknowledged once durable there; orders are sent to agents after commits, and after a Hello.
//
// Threads: the events may come from any of the links' threads. Lifetime: must outlive the listener
// that feeds it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "control/control.hpp"
#include "diagnosis/rank_watch.hpp"
#include "gateway/progress.hpp"
#include "gateway/shells.hpp"
#include "net/link.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

// Issues temporary keys of the job's role, for one attempt. The API layer implements it.
using IssueCredentials = std::function<wire::Credentials(
    const domain::Job& job, const domain::AttemptId& attempt, Instant now)>;

// Keys are renewed when less than this time is left, so that an agent which lost its link can
// connect again before they expire.
inline constexpr Duration kCredentialsLeftMin = 15min;

// An agent's report about its allocation, which runs one attempt after another (docs/decisions/38).
// Its token was verified.
struct LinkedAllocation {
  uint64_t number = 0;  // the number of the Slurm job
  uint32_t served = 0;  // attempts that ran in it before this one
  domain::AttemptId attempt;
  std::string token;
  std::string machine;             // the machine of the attempt's host
  std::string submitter;           // the user or role that created the attempt's job
  bool begun = false;              // the host had reported facts before the agent connected
  std::optional<wire::Idle> idle;  // set: the host has ended; nullopt: the agent connects
};
// Called before the agent is welcomed. Returns the reason to reject it; "" accepts it. Must not
// block, or call Agents.
using ReportAllocation = std::function<std::string(LinkedAllocation)>;

// Called when a fault of a rank, loader or link begins or ends, on the thread of a link or of
// control. Must not block, or call Agents.
using ReportRankFault = std::function<void(const domain::JobKey&, const diagnosis::FaultNews&)>;

class Agents {
 public:
  // Requires: the listener and the loops have stopped.
  virtual ~Agents() = default;
  // The events for host::listen_links.
  virtual net::LinkEvents events() = 0;
  // Returns the number of connected agents.
  virtual size_t linked() = 0;
  // Returns the shells into hosts with connected agents.
  virtual Shells& shells() = 0;
  // Returns the last report of each transfer, ordered by host.
  virtual std::vector<HostProgress> progress(domain::JobNumber job) = 0;
  // Replaces the function to call. The previous one is no longer called once this returns.
  virtual void report_faults(ReportRankFault report) = 0;
  // Returns when the job's hosts were last active, ordered by host.
  virtual std::vector<HostActivity> activity(domain::JobNumber job) = 0;
  // Sends an idle agent its next order. Returns false if no agent of that allocation and attempt is
  // connected.
  virtual bool send_order(uint64_t allocation, const domain::AttemptId& from,
                          const wire::NextOrder& order) = 0;
};

// Limits the log and metrics of one host of a job. Data beyond a limit is dropped, and a line of
// the log reports it once.
struct DataCaps {
  uint64_t log_bytes_max = uint64_t{16} << 30;  // on disk: a day of 200 KiB/s
  size_t metric_series_max = 1'000;             // names of metrics
};

// Lifetime: all arguments outlive it. Requires: control's loops have not started yet.
std::unique_ptr<Agents> make_agents(control::ControlPlane& control, observe::Logs& logs,
                                    observe::Metrics& metrics, Clock& clock, Duration stop_grace,
                                    IssueCredentials issue_credentials, const DataCaps& caps = {},
                                    ReportAllocation allocations = {});

}  // namespace trainyard::gateway
