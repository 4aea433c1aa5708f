#include "gateway/orders.hpp"

#include <algorithm>
#include <span>

#include "reconcile/state.hpp"

namespace trainyard::gateway {
namespace {

using domain::HostState;
using domain::StopCause;

// Returns the state of the main host that this host follows; nullopt if it follows none.
std::optional<HostState> followed_state(const domain::Job& job, const domain::Attempt& attempt,
                                        domain::HostIndex host) {
  const auto main = job.spec.main_host();
  if (!main || host == *main) return std::nullopt;
  return attempt.hosts[*main].state;
}

StopCause stop_cause_of(const domain::Job& job, const domain::Attempt& attempt,
                        domain::HostIndex host) {
  if (!attempt.interruption.empty()) return StopCause::interrupted;
  if (attempt.first_failed) return StopCause::host_failed;
  if (job.stop_cause != StopCause::none) return job.stop_cause;
  const auto followed = followed_state(job, attempt, host);
  return followed && *followed >= HostState::draining ? StopCause::main_ended : StopCause::none;
}

}  // namespace

wire::Stop stop_order_of(const domain::Job& job, const domain::Attempt& attempt,
                         domain::HostIndex host, Duration stop_grace) {
  const Duration usual =
      attempt.interrupted ? attempt.notice : reconcile::stop_grace_of(job, stop_grace);
  return {stop_cause_of(job, attempt, host), std::min(usual, job.stop_grace.value_or(usual))};
}

bool main_runs_for(const domain::Job& job, const domain::Attempt& attempt, domain::HostIndex host) {
  return followed_state(job, attempt, host) == HostState::running;
}

std::optional<wire::PeersDrained> peers_order_of(const domain::Attempt& attempt,
                                                 domain::HostIndex host) {
  if (host != 0 || attempt.hosts.size() < 2) return std::nullopt;
  wire::PeersDrained peers;
  for (const domain::Host& peer : std::span(attempt.hosts).subspan(1)) {
    if (peer.state < HostState::uploading) return std::nullopt;
    peers.staged_models.push_back(peer.staged_model);
  }
  return peers;
}

}  // namespace trainyard::gateway
