// JobFault is an error in the data of one job. It is thrown while the job's commands are applied or
// the job is planned, and caught per job (reconcile.cpp, control/commit_batch.cpp): the job fails
// with the reason, and the server continues.
//
// Threads: plain values.
#pragma once

#include <stdexcept>

namespace trainyard::reconcile {

class JobFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws JobFault if the condition is false. It is for conditions on one job's record; CHECK is for
// faults that concern all jobs.
inline void require(bool condition, const char* why) {
  if (!condition) throw JobFault(why);
}

}  // namespace trainyard::reconcile
