// Decides which idle Slurm job runs a waiting attempt, and which idle jobs are released.
//
// A Slurm job whose attempt has ended waits for a while for another one of the same kind: on the
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
  Duration run_time_max{};  // the attempt's, including the time for images and artifacts
};

// Returns a text of 16 hexadecimal digits, which the job's comment has. It is equal for requests
// with the same placement, sizes, account and submitter.
std::string allocation_kind(const SlurmJobRequest& request, std::string_view submitter);

// Returns the suitable job with the least time left; of equal jobs the one with the lowest number.
// nullopt: none is suitable.
std::optional<uint64_t> choose_allocation(const std::vector<IdleAllocation>& idle,
                                          const AllocationNeed& need);

// Returns the idle jobs to release because pending jobs need their nodes. `pending_on`: nodes; "*":
// any node. Jobs that have been idle for less than `spared` are kept: an attempt may be on its way
// to them.
std::vector<uint64_t> allocations_to_release(const std::vector<IdleAllocation>& idle,
                                             const std::vector<std::string>& pending_on,
                                             Duration spared);

}  // namespace trainyard::launch
