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
  std::string kept_copy;  // the path of the replaced ledger
};

// Replaces the ledger with the copy made before the last migration. The replaced ledger is
// kept next to it.
// Errors: not_found (there is no such copy), conflict (not a ledger), exhausted, and those of
// files. After an error the ledger is unchanged.
Result<Restored> restore_copy(const std::string& path);

}  // namespace trainyard::ledger
