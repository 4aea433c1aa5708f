// Loads NCCL and the CUDA driver at run time, so that builds and programs without a GPU do not need
// them.
//
// Threads: the loaded functions are immutable. Lifetime: the libraries are never unloaded.
// Errors:  unavailable, naming the missing library or function.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

// Types of NCCL and CUDA, used only through pointers.
extern "C" {
struct ncclComm;
struct CUstream_st;
}

namespace trainyard::collectives::nccl {

using Communicator = ncclComm*;
using Stream = CUstream_st*;

// ncclUniqueId: identifies a communicator while its ranks connect.
struct Id {
  char bytes[128];
};

// The functions of nccl.h and cuda.h that are used, under their own names. All but the last return
// 0 on success.
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
  int (*ncclReduce)(const void*, void*, size_t, int type, int reduction, int root, Communicator,
                    Stream);
  int (*ncclBroadcast)(const void*, void*, size_t, int type, int root, Communicator, Stream);
  int (*ncclSend)(const void*, size_t, int type, int peer, Communicator, Stream);
  int (*ncclRecv)(void*, size_t, int type, int peer, Communicator, Stream);
  int (*cuStreamQuery)(Stream);
  const char* (*ncclGetErrorString)(int);
};

// Result codes of NCCL and CUDA, and a version of NCCL.
inline constexpr int kSuccess = 0;
inline constexpr int kInProgress = 7;
inline constexpr int kStreamNotReady = 600;  // CUDA_ERROR_NOT_READY
inline constexpr int kVersionWithF8 = 22400;

// Loads both libraries. The names are passed to dlopen.
Result<Functions> load(const std::string& nccl, const std::string& cuda);

}  // namespace trainyard::collectives::nccl
