// Decides which idle Slurm job serves a waiting attempt, and which ones are released.
//
// A Slurm job that has served an attempt waits for a while for another one of the same kind: on the
// same node, with the same placement, resources and submitter. It must have enough time left.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct IdleAllocation {
  uint64_t job = 0;
  std::string node;
  std::string kind;  // allocation_kind()
  Duration time_left{};
  Duration idle{};  // since its last attempt has ended
};

struct AllocationNeed {
  std::string node;
  std::string kind;
  Duration run_time_max{};  // of the attempt, with the time for images and artifacts
};

// Returns a text of 16 hexadecimal digits that is equal for requests with the same placement,
// sizes, account and submitter, which Slurm treats alike. The job's comment has it.
std::string allocation_kind(const SlurmJobRequest& request, std::string_view submitter);

// Returns the job with the least sufficient time left, or nothing if none fits. Among equal jobs it
// is the one with the lowest number.
std::optional<uint64_t> choose_allocation(const std::vector<IdleAllocation>& idle,
                                          const AllocationNeed& need);

// Returns the idle jobs to release because pending jobs need their nodes. `pending_on`: nodes; "*":
// any node. Jobs that have been idle for less than `spared` are kept: an attempt may be on its way
// to them.
std::vector<uint64_t> allocations_to_release(const std::vector<IdleAllocation>& idle,
                                             const std::vector<std::string>& pending_on,
                                             Duration spared);

}  // namespace trainyard::launch
