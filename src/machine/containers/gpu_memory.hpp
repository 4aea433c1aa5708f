// Clears the memory of GPUs between jobs, so that a job does not read what the one before it left there.
//
// A GPU is cleared when no process of a container holds it any more: the CUDA driver's library is asked for all memory
// that is free, in chunks, and zeros are written over it. A driver may hang, so this happens in a process of its own with
// a deadline. What is known of each GPU is kept in files of one directory, "marks": one that a job uses, and one that
// could not be cleared. A GPU without a mark holds nothing of a job.
//
// Threads: callable from anywhere; marks of one GPU by one process at a time.
// Errors: not_found (no CUDA driver on this machine), unavailable (a process holds the GPU, or the driver's error),
//         cancelled (the driver took too long), and those of files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// Whether the device file is a whole GPU that the CUDA driver knows: "/dev/nvidia" and a number.
bool is_gpu(const std::string& device);

// The functions of libcuda.so.1 that are used, with the types of its interface: 0 is success.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*count)(int* devices);
  int (*get)(int* device, int ordinal);
  int (*bus)(char* text, int bytes, int device);
  int (*create_context)(void** context, unsigned flags, int device);
  int (*destroy_context)(void* context);
  int (*free_bytes)(size_t* free, size_t* total);
  int (*allocate)(unsigned long long* address, size_t bytes);
  int (*release)(unsigned long long address);
  int (*fill)(unsigned long long address, unsigned char value, size_t bytes);
  int (*synchronize)();
};

// Writes zeros over all free memory of a GPU; the bytes that were written. `bus`: its PCI address, "0000:3b:00.0"; "" when
// it is not known: then `number` is the driver's own. Leaves none of it allocated.
Result<uint64_t> clear_memory(const CudaDriver& driver, const std::string& bus, int number);

// The same of a device file, in this process. Below `root` lies proc: "" for the machine's own.
Result<uint64_t> clear_gpu(const std::string& device, const std::string& root = "");

// Processes of containers (of other PID namespaces than ours, as far as we see them) that have the device open or mapped.
std::vector<pid_t> holders_of(const std::string& device);

// Waits until nothing holds the device, and clears it by `program --clear-gpu DEVICE`.
Result<void> clear_gpu_by(const std::string& program, const std::string& device);

class GpuMarks {
 public:
  using Clear = std::function<Result<void>(const std::string& device)>;
  GpuMarks(std::string directory, Clear clear) : directory_(std::move(directory)), clear_(std::move(clear)) {}
  // Before a job: clears what an earlier one left whose end was not seen, and marks the GPU as used.
  Result<void> claim(const std::string& device) const;
  // After a job: clears the GPU, and it has no mark any more; or it is marked as not cleared.
  Result<void> release(const std::string& device) const;

 private:
  Result<void> clear(const std::string& device) const;
  std::string mark_of(const std::string& device) const;
  const std::string directory_;
  const Clear clear_;
};

// A GPU that could not be cleared. It is not given to a job until its mark is removed.
struct UnclearedGpu {
  std::string device, reason, mark;  // mark: the file
};
std::vector<UnclearedGpu> uncleared_gpus(const std::string& directory);

}  // namespace trainyard::containers
