// Formats pending reasons, which explain a plan to users. Amounts are rounded up, so that a user
// who adds what a reason names has added enough.
//
// Threads: pure. Private to this module.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/gang.hpp"
#include "schedule/limits.hpp"
#include "schedule/quota.hpp"

namespace trainyard::schedule {

enum class Resource { cpus, memory, gpus };
inline constexpr Resource kResources[] = {Resource::cpus, Resource::memory, Resource::gpus};

// In the unit that users read: vCPU, GiB, GPUs.
double amount(const Share& share, Resource resource);

// The capacity that a gang needs on one machine, and the capacity that is free there.
struct Shortage {
  const Machine* machine = nullptr;
  Share needs;
  Share free;
  // The jobs that hold it, in the order in which they started.
  std::vector<std::pair<std::string_view, Share>> held = {};
};

// "waits for 2 more vCPU on machine box-1 (needs 8, 6 free): held by training-job/a (2)". Several
// are joined by "; and for "; of many machines the first are named.
std::string shortage_reason(const std::vector<Shortage>& shortages);

// "waits for capacity for 156 more of its 256 hosts (each needs 8 vCPU)": for gangs that are too
// large to name each machine.
std::string capacity_reason(const Gang& gang, int64_t capacity);

// "needs 32 GiB of memory on one machine, the largest has 16: add 1 machine with at least 8 vCPU
// and 32 GiB of memory". `placed` hosts of the gang would fit on empty machines, `unplaced` would
// not.
std::string too_large_reason(size_t placed, const std::vector<HostRequest>& unplaced,
                             const std::vector<Machine>& machines);

// "waits for 2 more vCPU of compute environment small (needs 4, 6 of its 8 are used)"; or that the
// job never fits, with the remedy; or the job that it waits behind.
std::string limit_reason(const Limits& limits, const Limits::Obstacle& obstacle);

// "waits for 2 more instances of quota share red (needs 4, 8 of its 10 are used)"
std::string quota_reason(const std::string& share, const Quotas::Obstacle& obstacle);

// "waits for training-job/a and training-job/b, which are preempted for it"
std::string preempted_reason(const std::vector<std::string_view>& who);
// "training-job/b of quota share red reclaims what quota share blue has borrowed"
std::string preemption_reason(const WaitingJob& by, const Running& from);

// "waits behind training-job/a, which waits for ..."
std::string behind_reason(const std::string& first, const std::string& its_reason);
// "; starts by 2026-11-20 09:45:00 UTC at the latest"
std::string starts_by(Instant at);
// "; it is free by .. UTC at the latest": the limit, regardless of machines.
std::string free_by(Instant at);

// "this machine has 2 vCPU and 23.5 GiB; ml.m5.4xlarge x 2 requires 32 vCPU and 128 GiB: each host
// gets 1/2 of the machine: 1 vCPU, 11.7 GiB". `given` is what the hosts of each request get.
std::string scaled_note(const Machine& machine, const std::vector<HostRequest>& requested,
                        const std::vector<Group>& given);

inline constexpr size_t kHoldersMax = 5;        // named in a reason, which stays readable
inline constexpr size_t kMachinesNamedMax = 3;  // likewise

}  // namespace trainyard::schedule
