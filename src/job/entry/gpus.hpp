// The GPUs that this container was given, and which processors are near each.
//
// A rank is pinned to the GPU of its local rank: it runs on that GPU's processors, so that its memory and its threads
// are on the GPU's side of the machine, and the number is the same GPU for all ranks. It goes on seeing the others:
// scripts choose theirs by that number (docs/decisions/08-entry.md).
//
// Threads: callable from anywhere. Errors: none; what the machine does not tell is left empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::entry {

struct Gpu {
  int device = 0;         // of /dev/nvidiaN
  std::string bus;        // "0000:3b:00.0"; "" when the driver does not tell
  std::vector<int> cpus;  // of its side of the machine; empty: not known, or all are as near
};

// In the order of their buses, in which CUDA counts them under CUDA_DEVICE_ORDER=PCI_BUS_ID. Below `root` lie
// dev, proc and sys: "" for the container's own.
std::vector<Gpu> find_gpus(const std::string& root = "");

// Of "0-3,8,10-11"; nothing of it, when it is not written so.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace trainyard::entry
