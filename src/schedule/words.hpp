// The sentences in which a plan explains itself to users. Written so that doing what one says is enough:
// amounts are rounded up.
//
// Threads: pure. Private to this room.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

enum class Resource { cpus, memory, gpus };
inline constexpr Resource kResources[] = {Resource::cpus, Resource::memory, Resource::gpus};

// In the unit that people read: vCPU, GiB, GPUs.
double amount(const domain::Share& share, Resource resource);

// What a gang would need of one machine and does not find free there.
struct Shortage {
  const Machine* machine = nullptr;
  domain::Share needs;
  domain::Share free;
};

// "waits for 2 more vCPU on machine box-1 (needs 8, 6 free): held by training-job/a (2)". Several shortages
// are joined by "; and for ".
std::string shortage_sentence(const std::vector<Shortage>& shortages, const std::vector<Held>& held);

// "needs 32 GiB of memory on one machine, the largest has 16: add 1 machine with at least 8 vCPU and 32 GiB
// of memory". `placed` hosts of the gang would find room on empty machines, `unplaced` would not.
std::string too_large_sentence(size_t placed, const std::vector<Ask>& unplaced,
                               const std::vector<Machine>& machines);

// "waits for 2 vCPU of compute environment small (needs 4, 6 of its 8 are used)"; or that it never fits.
std::string limit_sentence(const Environment& environment, double needs_cpus, double used_cpus);

// "waits for its turn behind training-job/a, which waits for ..."
std::string turn_sentence(const std::string& first, const std::string& its_reason);

// "this machine has 2 vCPU and 23.5 GiB; ml.m5.4xlarge x 2 asks for 32 vCPU and 128 GiB: each host gets 1/2
// of the machine: 1 vCPU, 11.7 GiB". `given` is what each host gets.
std::string scaled_note(const Machine& machine, const std::vector<Ask>& asked,
                        const std::vector<domain::Share>& given);

}  // namespace trainyard::schedule
