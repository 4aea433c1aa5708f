// Draws at random the resources and jobs that the users of a simulation request.
#pragma once

#include <vector>

#include "batch/catalog.hpp"
#include "control/control.hpp"
#include "domain/job.hpp"
#include "launch/launcher.hpp"
#include "sim/world.hpp"

namespace trainyard::sim {

// Queues and their resources, in an order in which they can be created: "q", and in some clusters
// "fair", which is shared by weights, and "training", a queue of service jobs with quota shares.
struct Resources {
  std::vector<batch::Resource> in_order;
  bool fair = false;
  bool training = false;
};
Resources some_resources(World& world);

// Draws a training job of a user, named by its number. It may run until it is stopped, and may
// request instances that fit nowhere.
control::CreateJob some_training_job(World& world, uint64_t number);
inline constexpr const char* kEndlessVariable = "ENDLESS";      // a variable of jobs that never end
inline constexpr const char* kTooLargeType = "ml.m5.24xlarge";  // fits on no machine
// True if hosts of these shares fit on the empty machines together.
bool fits_on(std::vector<launch::Machine> machines, const std::vector<domain::Share>& hosts);

// Draws arrays of Batch, possibly none, in the order of their submission: each may depend on
// earlier ones.
std::vector<control::CreateJob> some_arrays(World& world, const Resources& resources);
// Draws service jobs, none when no queue accepts them. Each fits into its quota share.
std::vector<control::CreateJob> some_service_jobs(World& world, const Resources& resources);

// Draws jobs of a hostile user: each has a number, or a sum of numbers, that must be rejected.
inline constexpr const char* kHostileUser = "mallory";
std::vector<control::CreateJob> some_extreme_jobs(World& world);
// Returns a job as a version without overflow checks committed it: its host count is 0 in 32 bits.
// It must fail without affecting other jobs.
reconcile::CreateJob job_of_an_earlier_version();

}  // namespace trainyard::sim
