// JobFault is a fault in the data of one job. It is thrown where the job's commands are applied or
// the job is planned, and caught at that job's boundary (reconcile.cpp, group.cpp): the job fails
// with the reason, the server continues.
//
// Threads: plain values.
#pragma once

#include <stdexcept>

namespace trainyard::reconcile {

class JobFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws JobFault when the condition does not hold. For conditions that depend on one job's record
// alone; faults that concern all jobs are CHECKs.
inline void require(bool condition, const char* why) {
  if (!condition) throw JobFault(why);
}

}  // namespace trainyard::reconcile
