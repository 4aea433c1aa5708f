// A DeviceGroup runs the operations of a group on GPU memory, by NCCL where the machines have it.
//
//   auto device = TRY(DeviceGroup::make(*group));
//   TRY(device->run(calls::allreduce(numbers), stream));     // numbers.data lies on this rank's GPU
//
// The ranks connect through their group, which also names a lost rank when an operation does not end. NCCL chooses its own order
// of additions: sums are alike on all ranks, but not bit for bit what the plans give.
//
// Threads: confined to one at a time, with the rank's CUDA context current. Lifetime: within the group's.
// Errors:  unavailable where a rank has no NCCL (it is named), and as Group says of ranks that died or hang: then the
//          communicator was aborted, and every later call returns the same. invalid for what NCCL does not know (bits,
//          16-bit integers, averages of integers, a prescale): then nothing was sent.
// Units:   as in group.hpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collectives/device/nccl.hpp"
#include "collectives/group.hpp"

namespace trainyard::collectives {

struct DeviceOptions {
  // What is loaded, as dlopen takes it.
  std::string nccl = "libnccl.so.2";
  std::string cuda = "libcuda.so.1";
  // How long an operation may take, from its call to its end; NCCL itself would wait forever.
  Duration silence_max = 10min;
  // Asked while waiting; true ends the wait with `cancelled`. May be empty.
  std::function<bool()> cancelled;
};

class DeviceGroup {
 public:
  // All ranks call it, each with the GPU chosen that is to be its own.
  static Result<std::unique_ptr<DeviceGroup>> make(Group& group, DeviceOptions options = {});
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  // Follows what is on the stream already (a cudaStream_t; null: the default one), and returns when the stream is empty.
  Result<void> run(const Call& call, nccl::Stream stream = nullptr);

 private:
  DeviceGroup(Group& group, DeviceOptions options, const nccl::Functions& nccl);
  Result<void> enqueue(const Call& call, nccl::Stream stream);
  // Each rank's block from it to all, from all to it, or both.
  Result<void> exchange(const Call& call, nccl::Stream stream);
  Result<void> wait(nccl::Stream stream);
  Result<void> good(int answer, const char* doing) const;
  Error fail(Error error);

  Group& group_;
  const DeviceOptions options_;
  const nccl::Functions nccl_;
  nccl::Communicator communicator_ = nullptr;
  std::optional<Error> failure_;
};

}  // namespace trainyard::collectives
