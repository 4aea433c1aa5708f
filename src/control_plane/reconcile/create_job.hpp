// CreateJob is the command to create a job: a request of the API layer, completed by control.
//
// Threads: plain values.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::reconcile {

struct CreateJob {
  // -- from the API layer
  domain::JobKey key;
  domain::JobSpec spec;
  std::vector<domain::Tag> tags;

  // -- set by control
  domain::JobNumber number = 0;
  std::string account = {};
  std::string arn = {};
  Duration clock_offset = {};
  std::vector<domain::JobNumber> awaits = {};        // as Job::awaits
  std::vector<domain::JobNumber> awaits_alike = {};  // as Job::awaits_alike
};

}  // namespace trainyard::reconcile
