// FetchLock is the right to fetch one block. At most one thread of all processes on a machine has
// it at a time.
//
// The lock is on one byte of a file, at an offset derived from the block's hash, so a million
// blocks need no further files. The kernel releases it when its holder ends. Two blocks with the
// same offset are fetched one after the other; there is no other effect.
//
// Threads: confined to one. Errors: by errno.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/sha256.hpp"
#include "os/files.hpp"

namespace trainyard::cache {

class FetchLock {
 public:
  // Opens the lock without taking it. Makes the file if it is absent.
  static Result<FetchLock> open(const std::string& path, const Digest& hash);
  FetchLock(FetchLock&&) = default;
  ~FetchLock();

  // Returns false if another thread or process holds it.
  Result<bool> try_take();

 private:
  FetchLock(os::File file, uint64_t offset) : file_(std::move(file)), offset_(offset) {}
  os::File file_;
  uint64_t offset_;
};

}  // namespace trainyard::cache
