// Builds minimal consistent records for tests of the ledger.
//
// Threads: plain functions.
#pragma once

#include <string>

#include "ledger/ledger.hpp"

namespace trainyard::ledger {

inline domain::Job a_job(uint64_t number, const std::string& name,
                         domain::JobState state = domain::JobState::waiting, int64_t created = 0) {
  domain::Job job;
  job.number = number;
  job.key = {"us-east-1", name};
  job.spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
  job.state = state;
  job.created = from_milliseconds(created ? created : int64_t(number));
  job.modified = job.created;
  job.transitions = {{domain::Phase::starting, "", job.created, {}}};
  return job;
}

inline CommandRecord a_command(uint64_t sequence) {
  return {sequence, from_milliseconds(5), "create", {{"n", sequence}}};
}

inline domain::Job a_batch_job(uint64_t number, const std::string& name,
                               domain::JobState state = domain::JobState::waiting) {
  domain::Job job = a_job(number, name, state);
  job.spec.queue.emplace();
  job.spec.contract = domain::Contract::plain;
  job.spec.queue->name = "quick";
  if (state == domain::JobState::active) job.attempts.emplace_back().hosts.resize(1);
  return job;
}

}  // namespace trainyard::ledger
