// A DeviceGroup runs the operations of a Group on GPU memory, through NCCL.
//
//   auto device = TRY(DeviceGroup::make(*group));
//   TRY(device->run(calls::allreduce(numbers), stream));  // numbers.data: this rank's GPU memory
//
// The ranks exchange NCCL's unique ID through their group. If an operation does not complete, the
// group determines which rank is lost. NCCL chooses its own order of additions: all ranks get equal
// sums, but the bits may differ from those of the plans.
//
// Threads: confined to one at a time, with the CUDA context of this rank current. Lifetime: the
// group outlives it.
// Errors:  unavailable, when a rank has no NCCL (the error names it), has died or hangs; cancelled.
//          After an operation has failed, the communicator is aborted and every later call returns
//          the same error. invalid, for types and reductions that NCCL lacks (bitwise reductions,
//          16-bit integers, averages of integers) and for a prescale: nothing was enqueued.
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
  // The names of the libraries, which are passed to dlopen.
  std::string nccl = "libnccl.so.2";
  std::string cuda = "libcuda.so.1";
  // The longest time from the call of an operation to its end; NCCL itself would wait forever.
  Duration peer_timeout = 10min;
  // Called repeatedly during an operation; true ends it with `cancelled`. May be empty.
  std::function<bool()> cancelled;
};

class DeviceGroup {
 public:
  // All ranks call it, each with its own GPU as the current device.
  static Result<std::unique_ptr<DeviceGroup>> make(Group& group, DeviceOptions options = {});
  ~DeviceGroup();
  DeviceGroup(const DeviceGroup&) = delete;
  DeviceGroup& operator=(const DeviceGroup&) = delete;

  // Runs after the work that is already on the stream (a cudaStream_t; null: the default stream).
  // Returns when the stream is empty.
  Result<void> run(const Call& call, nccl::Stream stream = nullptr);

 private:
  DeviceGroup(Group& group, DeviceOptions options, const nccl::Functions& nccl);
  Result<void> enqueue(const Call& call, nccl::Stream stream);
  // Runs the operations that NCCL has no call for, as sends, reductions and broadcasts of blocks.
  Result<void> exchange(const Call& call, nccl::Stream stream);
  Result<void> reduce_blocks(const Call& call, nccl::Stream stream);
  Result<void> broadcast_blocks(const Call& call, nccl::Stream stream);
  // Do nothing if `size` is 0.
  Result<void> send(const void* from, size_t size, int peer, nccl::Stream stream);
  Result<void> receive(void* into, size_t size, int peer, nccl::Stream stream);
  Result<void> wait(nccl::Stream stream);
  Result<void> check_status(int answer, const char* doing) const;
  Error fail(Error error);

  Group& group_;
  const DeviceOptions options_;
  const nccl::Functions nccl_;
  nccl::Communicator communicator_ = nullptr;
  std::optional<Error> failure_;
};

}  // namespace trainyard::collectives
