// An AgentSession is the server's end of one agent's link, and the state of the host behind it.
//
// Threads: guarded by the server's mutex_ (agents.cpp), except where fields say otherwise.
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
  // Written when the link opens.
  std::shared_ptr<net::Link> link;
  uint64_t number = 0;  // identifies the link

  // Written when the agent's Hello has been verified.
  bool greeted = false;
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  LinkedAllocation allocation;  // number 0: the agent runs a single attempt
  domain::JobKey job;
  observe::StreamKey stream;
  std::string writer;                       // the name under which its metric batches are stored
  uint32_t version = wire::kVersionOldest;  // the latest version that both ends know

  // Used only by the link's own events, without mutex_.
  bool skipped = false;            // an unknown message was logged already; log it only once
  uint64_t dropped_log_bytes = 0;  // since the job's log last reported dropped lines
  bool log_full = false;           // the job's log already reports that its size limit is reached
  std::set<std::string> series;    // the names of its metrics
  bool series_full = false;        // the job's log already reports that their limit is reached
  uint64_t data_applied = 0;       // the number of the last stored batch
  // The host's log stream was removed, and with it the number of its last batch: the next batch may
  // have any number.
  bool stream_lost = false;

  // Written when a message of the agent arrives.
  std::vector<wire::Progress> progress;    // the last report of each transfer
  std::optional<wire::Activity> activity;  // the last report
  std::chrono::nanoseconds activity_at{};  // the monotonic time of its arrival
  std::optional<wire::Idle> idle;  // offer received, but not reported until the host has ended

  // Written when orders are sent. An order is sent once on this link, and again on the next one.
  domain::StopCause stop_sent = domain::StopCause::none;
  Duration grace_sent{};  // grace period sent with that Stop
  bool peers_sent = false;
  bool main_runs_sent = false;
  std::optional<Instant> credentials_expire;
  bool dismissed = false;        // Goodbye or Refused was sent; nothing more may be sent
  bool ended_in_ledger = false;  // the host has ended in the ledger

  // Written when the link closes.
  bool open = true;

  void say(const wire::Message& message) {
    if (open) link->send(wire::encode(message));
  }
};

}  // namespace trainyard::gateway
