// An AgentSession is the server's end of one agent's link, and the state of the host behind it.
//
// Threads: guarded by the server's mutex_ (agents.cpp), except `data_applied`, which only the
// link's own events use.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "domain/job.hpp"
#include "gateway/agents.hpp"
#include "net/link.hpp"
#include "observe/logs.hpp"
#include "wire/codec.hpp"
#include "wire/messages.hpp"

namespace trainyard::gateway {

struct AgentSession {
  std::shared_ptr<net::Link> link;
  bool greeted = false;  // its Hello was verified
  bool open = true;
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  LinkedAllocation allocation;  // number 0: the agent does not serve one attempt after another
  domain::JobKey job;
  observe::StreamKey stream;
  uint32_t version = wire::kVersionOldest;  // that both ends speak
  bool skipped = false;                     // a log line said that a message was not understood
  std::string writer;                       // of metric batches
  uint64_t dropped_log_bytes = 0;           // since the last line about it
  bool log_full = false;                    // a line reported it
  std::set<std::string> series;             // names of metrics
  bool series_full = false;                 // a line reported it
  uint64_t data_applied = 0;
  // The host's log stream was removed, and with it the number of its last batch: the next batch may
  // have any number.
  bool stream_lost = false;

  // Orders that were sent on this link. They are repeated on the next link, not on this one.
  domain::StopCause stop_sent = domain::StopCause::none;
  Duration grace_sent{};  // with it
  bool peers_sent = false;
  bool main_runs_sent = false;
  std::vector<wire::Progress> progress;    // the last report of each transfer
  std::optional<wire::Activity> activity;  // the last report, and the monotonic time of its arrival
  std::chrono::nanoseconds activity_at{};
  uint64_t number = 0;             // identifies the link to its shells
  bool dismissed = false;          // Goodbye or Refused: nothing more is sent
  bool over = false;               // Goodbye: the host has ended in the ledger
  std::optional<wire::Idle> idle;  // not reported yet: the host has not ended
  std::optional<Instant> credentials_expire;

  void say(const wire::Message& message) {
    if (open) link->send(wire::encode(message));
  }
};

}  // namespace trainyard::gateway
