// Finds the GPUs of this container, and the processors near each.
//
// A rank is pinned to the GPU of its local rank: it runs on that GPU's processors, so that its
// memory and threads are on the GPU's NUMA node. A number denotes the same GPU for all ranks. The
// other GPUs stay visible: scripts choose theirs by the local rank (docs/decisions/08-entry.md).
//
// Threads: callable from anywhere. Errors: none; unknown properties are empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::entry {

struct Gpu {
  int device = 0;         // N of /dev/nvidiaN
  std::string bus;        // "0000:3b:00.0"; "" = unknown
  std::vector<int> cpus;  // of its NUMA node; empty: unknown, or all are equally near
};

// Returns the GPUs in the order of their buses, which is CUDA's order with
// CUDA_DEVICE_ORDER=PCI_BUS_ID. `root`: the parent of dev, proc and sys; "" = the container's root.
std::vector<Gpu> find_gpus(const std::string& root = "");

// Parses "0-3,8,10-11"; returns an empty list for invalid text.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace trainyard::entry
