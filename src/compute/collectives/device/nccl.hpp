// Loads NCCL from this machine when it is first needed, so that neither building nor starting needs it.
//
// Threads: the loaded functions are immutable. Lifetime: forever. Errors: unavailable, naming the missing library or
// function.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

// NCCL's and CUDA's own types, of which we hold pointers only.
extern "C" {
struct ncclComm;
struct CUstream_st;
}

namespace trainyard::collectives::nccl {

using Communicator = ncclComm*;
using Stream = CUstream_st*;

// ncclUniqueId: how the ranks of one communicator find each other.
struct Id {
  char bytes[128];
};

// What is used of nccl.h and cuda.h, by their names. All but the last answer 0 when it is well.
struct Functions {
  int (*ncclGetVersion)(int*);
  int (*ncclGetUniqueId)(Id*);
  int (*ncclCommInitRank)(Communicator*, int ranks, Id, int rank);
  int (*ncclCommDestroy)(Communicator);
  int (*ncclCommAbort)(Communicator);
  int (*ncclCommGetAsyncError)(Communicator, int*);
  int (*ncclGroupStart)();
  int (*ncclGroupEnd)();
  int (*ncclAllReduce)(const void*, void*, size_t, int type, int reduction, Communicator, Stream);
  int (*ncclReduce)(const void*, void*, size_t, int type, int reduction, int root, Communicator, Stream);
  int (*ncclBroadcast)(const void*, void*, size_t, int type, int root, Communicator, Stream);
  int (*ncclSend)(const void*, size_t, int type, int peer, Communicator, Stream);
  int (*ncclRecv)(void*, size_t, int type, int peer, Communicator, Stream);
  int (*cuStreamQuery)(Stream);
  const char* (*ncclGetErrorString)(int);
};

// Their numbers.
inline constexpr int success = 0;
inline constexpr int in_progress = 7;
inline constexpr int stream_not_ready = 600;  // CUDA_ERROR_NOT_READY
inline constexpr int version_with_f8 = 22400;

// Names as dlopen takes them.
Result<Functions> load(const std::string& nccl, const std::string& cuda);

}  // namespace trainyard::collectives::nccl
