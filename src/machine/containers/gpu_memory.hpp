// Clears the memory of GPUs between jobs, so that a job cannot read what an earlier job left there.
//
// A GPU is cleared when no process of a container holds it: all free memory is allocated
// from the CUDA driver's library, in chunks, and overwritten with zeros. A driver may hang, so this
// happens in a separate process with a deadline. The state of each GPU is kept in files of one
// directory, "marks": in use by a job, or not cleared. A GPU without a mark holds no data of a job.
//
// Threads: callable from anywhere; marks of one GPU by one process at a time.
// Errors: not_found (no CUDA driver on this machine), unavailable (a process holds the GPU, or the
// driver's error), cancelled (the driver took too long), and those of files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// True for the device file of a whole GPU that the CUDA driver knows: "/dev/nvidia" and a number.
bool is_gpu(const std::string& device);

// The functions of libcuda.so.1 that are used, with the types of their interface: 0 is success.
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

// Writes zeros over all free memory of a GPU and returns the bytes written. `bus`: its PCI address,
// "0000:3b:00.0"; if it is unknown, "", and `number` is the driver's own. Leaves none of it
// allocated.
Result<uint64_t> clear_memory(const CudaDriver& driver, const std::string& bus, int number);

// Does the same for a device file, in this process. `root` is the parent of proc: "" for the
// machine's own.
Result<uint64_t> clear_gpu(const std::string& device, const std::string& root = "");

// Processes of containers (of other visible PID namespaces) that have the device open or mapped.
std::vector<pid_t> holders_of(const std::string& device);

// Waits until no process holds the device, and clears it by running `program --clear-gpu DEVICE`.
Result<void> clear_gpu_by(const std::string& program, const std::string& device);

class GpuMarks {
 public:
  using Clear = std::function<Result<void>(const std::string& device)>;
  GpuMarks(std::string directory, Clear clear)
      : directory_(std::move(directory)), clear_(std::move(clear)) {}
  // Before a job: clears the GPU if the end of an earlier job was not seen, and marks it as used.
  Result<void> claim(const std::string& device) const;
  // After a job: clears the GPU and removes its mark, or marks it as not cleared.
  Result<void> release(const std::string& device) const;

 private:
  Result<void> clear(const std::string& device) const;
  std::string mark_of(const std::string& device) const;
  const std::string directory_;
  const Clear clear_;
};

// A GPU that could not be cleared. No job gets it until its mark is removed.
struct UnclearedGpu {
  std::string device, reason, mark;  // mark: the file
};
std::vector<UnclearedGpu> uncleared_gpus(const std::string& directory);

}  // namespace trainyard::containers
