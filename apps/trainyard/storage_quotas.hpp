// Reads [[storage_quota]] of the configuration file: how much a bucket may hold, or a user may store in all buckets.
//
// Threads: pure. Errors: invalid, with the key.
#pragma once

#include "objects/storage_use.hpp"
#include "trainyard/config_table.hpp"

namespace trainyard::apps {

Result<void> read_storage_quota(Table table, objects::StorageQuotas& quotas);

}  // namespace trainyard::apps
