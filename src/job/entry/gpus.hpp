// Finds the GPUs of this container, and the processors near each.
//
// A rank is pinned to the GPU of its local rank: it runs on that GPU's processors, so that its
// memory and threads are on the GPU's NUMA node, and the number means the same GPU for all ranks.
// The other GPUs stay visible: scripts choose theirs by that number (docs/decisions/08-entry.md).
//
// Threads: callable from anywhere. Errors: none; properties that the machine does not tell are left
// empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::entry {

struct Gpu {
  int device = 0;         // N of /dev/nvidiaN
  std::string bus;        // "0000:3b:00.0"; "" when the driver does not tell
  std::vector<int> cpus;  // of its NUMA node; empty: unknown, or all are equally near
};

// Returns the GPUs in the order of their buses, in which CUDA counts them under
// CUDA_DEVICE_ORDER=PCI_BUS_ID. `root` is the parent of dev, proc and sys: "" for the container's
// own.
std::vector<Gpu> find_gpus(const std::string& root = "");

// Parses "0-3,8,10-11"; returns nothing for another form.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace trainyard::entry
