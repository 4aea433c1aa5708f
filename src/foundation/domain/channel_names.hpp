// Defines the texts of a channel's input mode and distribution in AWS's API, in the training
// contract and in stored records.
#pragma once

#include "base/enum_table.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

inline constexpr EnumTable<InputMode> kInputModes{
    "input mode",
    {{InputMode::file, "File"}, {InputMode::pipe, "Pipe"}, {InputMode::fast_file, "FastFile"}}};

inline constexpr EnumTable<Distribution> kDistributions{
    "distribution",
    {{Distribution::fully_replicated, "FullyReplicated"},
     {Distribution::sharded_by_s3_key, "ShardedByS3Key"}}};

}  // namespace trainyard::domain
