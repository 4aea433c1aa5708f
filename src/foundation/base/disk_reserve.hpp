// DiskReserve checks that the disk has space for new data of users. A reserve is kept for the
// ledger: if less than the reserve is free, new jobs, objects and log lines are rejected.
//
// Threads: callable from anywhere, as free_bytes is. Errors: exhausted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/text.hpp"

namespace trainyard {

class DiskReserve {
 public:
  // `free_bytes` returns the free space of the file system (os/disk.hpp). If it fails, no data is
  // rejected.
  DiskReserve(uint64_t reserve_bytes, std::function<Result<uint64_t>()> free_bytes)
      : reserve_bytes_(reserve_bytes), free_bytes_(std::move(free_bytes)) {}

  Result<void> check() const {
    if (reserve_bytes_ == 0) return ok();
    const auto free = free_bytes_();
    if (!free || *free >= reserve_bytes_) return ok();
    return exhausted("the server's disk has " + human_bytes(*free) + " left, and " +
                     human_bytes(reserve_bytes_) +
                     " are kept for the server's own records: remove objects or extend the disk");
  }

 private:
  const uint64_t reserve_bytes_;
  const std::function<Result<uint64_t>()> free_bytes_;
};

// A call of DiskReserve::check(), which modules make before they store new data.
using CheckDiskSpace = std::function<Result<void>()>;
inline CheckDiskSpace no_reserve() {
  return [] { return ok(); };
}

}  // namespace trainyard
