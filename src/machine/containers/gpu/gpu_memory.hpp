// Clears the memory of GPUs between jobs, so that a job cannot read what an earlier job left there.
//
// A GPU is cleared when no process of a container uses it: all free memory is allocated in chunks
// through the library of the CUDA driver, and overwritten with zeros. A driver may hang, so a
// separate process does this, with a deadline. The state of each GPU is stored in a file ("mark"):
// in use by a job, or not cleared. A GPU without a mark contains no data of a job.
//
// Threads: callable from anywhere, for the mark of one GPU by one process at a time.
// Errors: not_found (no CUDA driver on this machine), unavailable (a process uses the GPU, or an
// error of the driver), cancelled (the driver took too long), and those of files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// Returns true for the device file of a whole GPU of the CUDA driver: "/dev/nvidia" and a number.
bool is_gpu(const std::string& device);

// The used functions of libcuda.so.1. They return 0 on success.
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

// Overwrites all free memory of a GPU with zeros and returns the number of bytes. `bus` is its PCI
// address, "0000:3b:00.0"; "": unknown, and `number` is the driver's number of the GPU. All memory
// is released again.
Result<uint64_t> clear_memory(const CudaDriver& driver, const std::string& bus, int number);

// Clears the GPU of a device file, in this process. `root` is the parent of proc; "": /proc of this
// machine.
Result<uint64_t> clear_gpu(const std::string& device, const std::string& root = "");

// Returns the processes of containers (of other visible PID namespaces) that have the device open
// or mapped.
std::vector<pid_t> holders_of(const std::string& device);

// Waits until no process uses the device, and clears it by running `program --clear-gpu DEVICE`.
Result<void> clear_gpu_by(const std::string& program, const std::string& device);

// GpuMarks manages the marks of GPUs in a directory.
class GpuMarks {
 public:
  using Clear = std::function<Result<void>(const std::string& device)>;
  GpuMarks(std::string directory, Clear clear)
      : directory_(std::move(directory)), clear_(std::move(clear)) {}
  // Called before a job: clears the GPU if it still has a mark, and marks it as used.
  Result<void> claim(const std::string& device) const;
  // Called after a job: clears the GPU and removes its mark; on failure, marks it as not cleared.
  Result<void> release(const std::string& device) const;

 private:
  Result<void> clear(const std::string& device) const;
  std::string mark_of(const std::string& device) const;
  const std::string directory_;
  const Clear clear_;
};

// A GPU that could not be cleared. Jobs do not get it until its mark is removed.
struct UnclearedGpu {
  std::string device, reason, mark;  // mark: path of the file
};
std::vector<UnclearedGpu> uncleared_gpus(const std::string& directory);

}  // namespace trainyard::containers
