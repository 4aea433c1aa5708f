// Converts resources to and from the ledger's records.
//
// Threads: pure functions. Errors: corrupt, naming the kind and what is wrong with the record.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "batch/catalog.hpp"
#include "ledger/ledger.hpp"

namespace trainyard::control {

ledger::ResourceRecord record_of(const batch::Resource& resource);
Result<batch::Resource> resource_of(const ledger::ResourceRecord& record);
// Checks that a record can be read; the ledger sets records aside that fail.
Result<void> check_resource(const ledger::ResourceRecord& record);

Result<batch::Catalog> catalog_of(const std::vector<ledger::ResourceRecord>& records);
// Requires: records of definitions.
Result<std::vector<batch::JobDefinition>> definitions_of(
    const std::vector<ledger::ResourceRecord>& records);

}  // namespace trainyard::control
