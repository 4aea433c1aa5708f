#include "collectives/device/nccl.hpp"

#include <dlfcn.h>

#include <cstring>

namespace trainyard::collectives::nccl {
namespace {

Result<void*> open(const std::string& name, const char* what) {
  // The libraries are never closed: their threads, and the destructors of their users, may outlive
  // this code.
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  return unavailable(std::string(what) + " is not available on this machine: " + ::dlerror());
}

template <class Function>
Result<void> find(void* handle, const std::string& library, const char* name, Function& function) {
  void* const symbol = ::dlsym(handle, name);
  if (symbol == nullptr)
    return unavailable(library + " has no " + name +
                       ": NCCL of 2.10 or newer and its driver are needed");
  std::memcpy(&function, &symbol, sizeof symbol);
  return ok();
}

}  // namespace

Result<Functions> load(const std::string& nccl, const std::string& cuda) {
  Functions found{};
  void* const driver = TRY(open(cuda, "CUDA driver"));
  TRY(find(driver, cuda, "cuStreamQuery", found.cuStreamQuery));
  void* const library = TRY(open(nccl, "NCCL"));
  TRY(find(library, nccl, "ncclGetVersion", found.ncclGetVersion));
  TRY(find(library, nccl, "ncclGetUniqueId", found.ncclGetUniqueId));
  TRY(find(library, nccl, "ncclCommInitRank", found.ncclCommInitRank));
  TRY(find(library, nccl, "ncclCommDestroy", found.ncclCommDestroy));
  TRY(find(library, nccl, "ncclCommAbort", found.ncclCommAbort));
  TRY(find(library, nccl, "ncclCommGetAsyncError", found.ncclCommGetAsyncError));
  TRY(find(library, nccl, "ncclGroupStart", found.ncclGroupStart));
  TRY(find(library, nccl, "ncclGroupEnd", found.ncclGroupEnd));
  TRY(find(library, nccl, "ncclAllReduce", found.ncclAllReduce));
  TRY(find(library, nccl, "ncclReduce", found.ncclReduce));
  TRY(find(library, nccl, "ncclBroadcast", found.ncclBroadcast));
  TRY(find(library, nccl, "ncclSend", found.ncclSend));
  TRY(find(library, nccl, "ncclRecv", found.ncclRecv));
  TRY(find(library, nccl, "ncclGetErrorString", found.ncclGetErrorString));
  return found;
}

}  // namespace trainyard::collectives::nccl
