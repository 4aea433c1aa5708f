// Agents is the server's end of every agent link. State facts go to control's writer and are
// acknowledged once they are in the ledger; log lines and metric points go straight to observe and
// are acknowledged once durable there; orders go down after commits, and after a Hello.
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

// Temporary keys of the job's role, for one attempt. Created by the API's auth; passed in by main.
using IssueCredentials = std::function<wire::Credentials(
    const domain::Job& job, const domain::AttemptId& attempt, Instant now)>;

// Keys are renewed when they have less than this left: an agent that lost its link finds it again
// in time.
inline constexpr Duration kCredentialsLeftMin = 15min;

// The report of an agent on its allocation (docs/decisions/38). Its token was verified.
struct LinkedAllocation {
  uint64_t number = 0;  // of the Slurm job
  uint32_t served = 0;  // attempts before this one
  domain::AttemptId attempt;
  std::string token;
  std::string machine;             // of the attempt's host
  std::string submitter;           // the user or role that created the attempt's job
  bool begun = false;              // the host had reported facts when it linked
  std::optional<wire::Idle> idle;  // its host has ended in the ledger; none: it links
};
// Called before the agent is welcomed. Returns why it is refused; "": it is not. Must not block, or
// call Agents.
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
  // The number of agents that are linked now.
  virtual size_t linked() = 0;
  // Shells into the hosts whose agents are linked.
  virtual Shells& shells() = 0;
  // The transfers of the job's hosts, by host: the last report of each.
  virtual std::vector<HostProgress> progress(domain::JobNumber job) = 0;
  // Sets what is called from now on; the former one is no longer called once this returns.
  virtual void report_faults(ReportRankFault report) = 0;
  // When the job's hosts were last active, by host.
  virtual std::vector<HostActivity> activity(domain::JobNumber job) = 0;
  // Sends an idle agent its next order. False: none in that allocation is linked for the attempt.
  virtual bool send_order(uint64_t allocation, const domain::AttemptId& from,
                          const wire::NextOrder& order) = 0;
};

// Limits the log and metrics of one host of a job. Data beyond them is dropped, and a line of its
// log says so.
struct DataCaps {
  uint64_t log_bytes_max = uint64_t{16} << 30;  // on disk: a day of 200 KiB/s
  size_t metric_series_max = 1'000;             // names: each is a row and a line of a chart
};

// Lifetime: all arguments outlive it. Requires: made before control's loops start.
std::unique_ptr<Agents> make_agents(control::ControlPlane& control, observe::Logs& logs,
                                    observe::Metrics& metrics, Clock& clock, Duration stop_grace,
                                    IssueCredentials issue_credentials, const DataCaps& caps = {},
                                    ReportAllocation allocations = {});

}  // namespace trainyard::gateway
