// FetchLock is the right to fetch one block, for one thread of all processes of a machine.
//
// It is a lock on one byte of a file, whose offset is taken from the block's hash, so a million
// blocks need no further files. The kernel releases it when its holder ends. Two blocks with one
// offset would wait for each other, and nothing worse.
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
  // Opens the lock, without taking it. The file is made when absent.
  static Result<FetchLock> open(const std::string& path, const Digest& hash);
  FetchLock(FetchLock&&) = default;
  ~FetchLock();

  // Returns false: another holds it.
  Result<bool> try_take();

 private:
  FetchLock(os::File file, uint64_t offset) : file_(std::move(file)), offset_(offset) {}
  os::File file_;
  uint64_t offset_;
};

}  // namespace trainyard::cache
