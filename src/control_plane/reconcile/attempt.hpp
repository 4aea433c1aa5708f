// Derives the state of an attempt and of its job from the states of the gang's hosts, with the
// texts of the AWS status machine. Private to this module: state.cpp applies commands with it.
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

// Makes a transition that is legal for every job whose record is valid.
template <class State, class Event>
void move(State& state, Event event) {
  const auto moved = domain::next(state, event);
  require(bool(moved), "the job's record does not allow its next state");
  state = *moved;
}

// A phase that is entered again keeps its entry in the history, with the newer message.
void enter(domain::Job& job, domain::Phase phase, std::string_view message, Instant at);
// The current phase is the last one.
void end_phases(domain::Job& job);
// The last phase of a job that was stopped.
void enter_stopped(domain::Job& job, Instant at);

// "AlgorithmError: .., exit code: 3 (algo-2)". Requires: that host failed.
std::string failure_reason(const domain::Attempt& attempt, domain::HostIndex index);
// True if a job whose attempt ends by this host's failure gets another one: spot jobs as long as
// they may wait, others as often as they requested. Only faults of the platform are retried.
bool tries_again(const domain::Job& job, const domain::Attempt& attempt, const domain::Host& host);
// The pool that the job leaves to the next matching one, when it is over.
void leave_pool(domain::Job& job, bool hosts_are_well, Instant at);
// Updates attempt and job, up to their ends, after a host changed its state. `happened` is when it
// did, `at` is now.
void follow(domain::Job& job, domain::Attempt& attempt, Instant happened, Instant at);

}  // namespace trainyard::reconcile
