// Takes a ledger back to what it was before the last migration, for the release that wrote it.
//
// Threads: any; no server has the ledger open.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::ledger {

struct Restored {
  int64_t version = 0;    // of the ledger, now
  std::string kept_copy;  // of what it was until now
};

// Puts the copy that was made before the last migration in the ledger's place. What it was until now is kept beside it.
// Errors: not_found (no copy was made here), conflict (not a ledger), exhausted, and those of files; then the ledger is as
// it was.
Result<Restored> restore_copy(const std::string& path);

}  // namespace trainyard::ledger
