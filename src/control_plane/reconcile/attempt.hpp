// What the states of a gang's hosts make of its attempt and of the job, in the words of the AWS status machine. Private
// to this room: state.cpp applies commands with it.
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

#include "domain/job.hpp"
#include "reconcile/job_fault.hpp"

namespace trainyard::reconcile {

inline constexpr std::string_view kTraining = "Training image download completed. Training in progress.";
inline constexpr std::string_view kInterrupted = "The training job was interrupted and starts again: ";

// Takes one of our own moves, which the code around it knows to be legal for every job whose record is sound.
template <class State, class Event>
void move(State& state, Event event) {
  const auto moved = domain::next(state, event);
  require(bool(moved), "the job's record does not allow its next state");
  state = *moved;
}

// A phase that is entered again is the same line of the history with a newer message.
void enter(domain::Job& job, domain::Phase phase, std::string_view message, Instant at);
// The present phase is the last one.
void end_phases(domain::Job& job);
// The last phase of a job that was stopped.
void enter_stopped(domain::Job& job, Instant at);

// "AlgorithmError: .., exit code: 3 (algo-2)". Requires: that host failed.
std::string failure_reason(const domain::Attempt& attempt, domain::HostIndex index);
// Whether a job whose attempt ends by this host's failure gets another one: spot jobs as long as they may wait, others
// as often as they asked for. Only what is ours to mend is tried again.
bool tries_again(const domain::Job& job, const domain::Attempt& attempt, const domain::Host& host);
// What the job leaves to the next one that matches, when it is over.
void leave_pool(domain::Job& job, bool hosts_are_well, Instant at);
// After a host moved: what its gang's states make of attempt and job, up to their ends. `happened` is when it did, `at`
// is now.
void follow(domain::Job& job, domain::Attempt& attempt, Instant happened, Instant at);

}  // namespace trainyard::reconcile
