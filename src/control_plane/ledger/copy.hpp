// Copies a ledger between a file and a PostgreSQL database, row by row. A server may write the
// source meanwhile: the copy is its state at one instant.
//
// Threads: any; each call has connections of its own. Errors: conflict (the target has a ledger
// with content, or the source has another version), not_found (no source), invalid (a text that
// the target cannot store), those of Ledger. After an error the target has no content.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "ledger/postgres_ledger.hpp"

namespace trainyard::ledger {

struct Copied {
  uint64_t rows = 0;  // of all tables
  uint64_t jobs = 0;
};

// Requires: `fencing` is the number of a lease of the target that this process has taken.
Result<Copied> copy_to_postgres(const std::string& file, const PostgresSettings& target,
                                uint64_t fencing);
Result<Copied> copy_to_file(const PostgresSettings& source, const std::string& file);
// Requires: both are files, and the target does not exist.
Result<void> copy_file(const std::string& source, const std::string& target);
// Renames a ledger's file within its directory; it then includes the content of its write-ahead
// log. Errors: conflict, if another connection has it open, or the target exists.
Result<void> move_file(const std::string& source, const std::string& target);

// Returns a checksum of all rows. It is equal for ledgers with equal content in a file and in
// PostgreSQL.
Result<uint64_t> checksum_of_file(const std::string& file);
Result<uint64_t> checksum_of_postgres(const PostgresSettings& source);

}  // namespace trainyard::ledger
