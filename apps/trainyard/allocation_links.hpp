// Connects a Slurm launcher (launch/agent_links.hpp) with the gateway, which has the links to
// agents.
//
// Threads: as AgentLinks. Lifetime: both arguments outlive the returned functions.
#pragma once

#include <utility>

#include "gateway/agents.hpp"
#include "launch/agent_links.hpp"

namespace trainyard::apps {

inline gateway::ReportAllocation report_to(launch::AgentLinks& links) {
  return [&links](gateway::LinkedAllocation linked) {
    launch::AllocationReport report;
    report.allocation = linked.number;
    report.served = linked.served;
    report.attempt = linked.attempt;
    report.token = std::move(linked.token);
    report.machine = std::move(linked.machine);
    report.submitter = std::move(linked.submitter);
    report.begun = linked.begun;
    if (linked.idle) {
      report.idle = true;
      report.keeps_host = linked.idle->keeps_host;
      report.time_left = linked.idle->time_left;
    }
    return links.report(std::move(report));
  };
}

inline launch::AgentLinks::Send send_by(gateway::Agents& agents) {
  return [&agents](const launch::AllocationOrder& order) {
    return agents.send_order(order.allocation, order.from, {order.order, order.same_host});
  };
}

}  // namespace trainyard::apps
