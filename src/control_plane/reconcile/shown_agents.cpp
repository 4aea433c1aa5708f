#include "reconcile/shown_agents.hpp"

#include <algorithm>

namespace trainyard::reconcile {

Shown shown_of(const domain::Attempt& attempt, domain::AttemptId id,
               const std::vector<launch::Agent>& agents, bool of_former_server) {
  Shown shown;
  shown.listed.resize(attempt.hosts.size());
  shown.alive.resize(attempt.hosts.size());
  shown.notes.resize(attempt.hosts.size());
  shown.preempted.resize(attempt.hosts.size());
  bool any_unknown = false;
  for (const launch::Agent& agent : agents) {
    any_unknown |= !agent.unknown_on.empty();
    if (agent.attempt != id || !agent.unknown_on.empty()) continue;
    if (agent.token != attempt.token || agent.host >= attempt.hosts.size()) {
      shown.foreign = true;
      continue;
    }
    shown.any = true;
    shown.listed[agent.host] = true;
    shown.notes[agent.host] = agent.note;
    shown.preempted[agent.host] = agent.preempted;
    shown.any_alive |= agent.alive;
    if (agent.alive) shown.alive[agent.host] = true;
  }
  // An ended attempt has no hosts that could be started or lost.
  if (!any_unknown || !of_former_server || attempt.state == domain::AttemptState::ended)
    return shown;
  for (const launch::Agent& agent : agents)
    for (domain::HostIndex host = 0; host < attempt.hosts.size(); ++host) {
      if (agent.unknown_on.empty() || agent.unknown_on != attempt.hosts[host].machine ||
          shown.listed[host])
        continue;
      shown.listed[host] = shown.alive[host] = shown.any = shown.any_alive = true;
      shown.notes[host] = agent.note;
    }
  return shown;
}

std::optional<domain::HostIndex> preempted_host(const domain::Attempt& attempt,
                                                const Shown& shown) {
  for (domain::HostIndex host = 0; host < attempt.hosts.size(); ++host) {
    const domain::HostState state = attempt.hosts[host].state;
    if (shown.preempted[host] && !is_final(state) &&
        (!shown.alive[host] || state <= domain::HostState::running))
      return host;
  }
  return {};
}

bool is_unstarted(const domain::Attempt& attempt, const Shown& shown) {
  for (domain::HostIndex host = 0; host < attempt.hosts.size(); ++host)
    if (attempt.hosts[host].facts_applied > 0 || (shown.alive[host] && shown.notes[host].empty()))
      return false;
  return true;
}

const std::string* note_of_pending(const domain::Attempt& attempt, const Shown& shown) {
  const bool pending = std::ranges::all_of(attempt.hosts, [](const domain::Host& host) {
    return host.state == domain::HostState::placed;
  });
  return pending && !shown.notes.front().empty() ? &shown.notes.front() : nullptr;
}

std::string place_of(const domain::Attempt& attempt, domain::HostIndex host, const Shown& shown) {
  return "on machine " + attempt.hosts[host].machine +
         (shown.notes[host].empty() ? "" : ": " + shown.notes[host]);
}

}  // namespace trainyard::reconcile
