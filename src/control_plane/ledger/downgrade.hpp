// Restores the ledger as it was before the last migration, for the release that wrote it.
//
// Requires: no server has the ledger open. Threads: callable from anywhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::ledger {

struct Restored {
  int64_t version = 0;    // of the ledger after the call
  std::string kept_copy;  // path of the ledger as it was before the call
};

// Replaces the ledger with the copy made before the last migration. The replaced ledger is
// kept next to it.
// Errors: not_found (no copy was made here), conflict (not a ledger), exhausted, and those of
// files; then the ledger is unchanged.
Result<Restored> restore_copy(const std::string& path);

}  // namespace trainyard::ledger
