// Implements `trainyard downgrade`: restores a data directory that the previous release can read.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::apps {

struct Downgraded {
  uint64_t joined = 0;         // objects that were stored as parts
  uint64_t points = 0;         // metrics' points that were converted
  int64_t ledger_version = 0;  // the version of the copy that was put in place
  std::string kept_ledger;     // the path of the replaced ledger
};

// Keeps all objects and metrics. An object that was uploaded in parts becomes one file, which
// changes its ETag. Replaces the ledger by the copy that was made at the upgrade, so later changes
// are lost. May be repeated after an interruption. Errors: conflict (a server runs), not_found (no
// copy was made), exhausted, corrupt (an object, metrics), and those of files.
Result<Downgraded> downgrade(const std::string& data_directory, Clock& clock, Random& random);

}  // namespace trainyard::apps
