// Derives the state of an attempt and of its job from the states of the gang's hosts, with AWS's
// status texts. Private to this module: state.cpp applies commands with it.
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

#include "domain/job.hpp"
#include "reconcile/job_fault.hpp"

namespace trainyard::reconcile {

inline constexpr std::string_view kInterrupted =
    "The training job was interrupted and starts again: ";

// Makes a transition. Throws JobFault if the state does not allow it, as in an invalid record.
template <class State, class Event>
void move(State& state, Event event) {
  const auto moved = domain::next(state, event);
  require(bool(moved), "the job's record does not allow its next state");
  state = *moved;
}

// Begins a phase of the job. If it is the current one, only replaces its message.
void enter(domain::Job& job, domain::Phase phase, std::string_view message, Instant at);
// Ends the current phase, without a next one.
void end_phases(domain::Job& job);
// Enters the last phase of a stopped job.
void enter_stopped(domain::Job& job, Instant at);

// Returns "AlgorithmError: .., exit code: 3 (algo-2)". Requires: that host failed.
std::string failure_reason(const domain::Attempt& attempt, domain::HostIndex index);
// Returns true if a job gets another attempt after this host's failure: spot jobs as long as they
// may wait, other jobs as often as they requested. Only faults of the platform are retried.
bool tries_again(const domain::Job& job, const domain::Attempt& attempt, const domain::Host& host);
// Creates the warm pool of an ended job, if it requested one and its hosts can be used again.
void leave_pool(domain::Job& job, bool hosts_are_well, Instant at);
// Updates the attempt and the job, up to their ends, after a host has changed its state at
// `happened`. `at` is now.
void update_from_hosts(domain::Job& job, domain::Attempt& attempt, Instant happened, Instant at);

}  // namespace trainyard::reconcile
