// Finds the tags of FSx resources by ARN, for FSx's operations and for policies that read tags.
//
// Threads: pure functions. Lifetime: the result points into the snapshot.
#pragma once

#include <string>

#include "file_systems/record.hpp"

namespace trainyard::api {

// Makes "arn:aws:fsx:REGION:ACCOUNT:RESOURCE". `resource`: "file-system/fs-..",
// "association/fs-../dra-.." or "task/task-..".
std::string fsx_arn(const std::string& region, const std::string& account,
                    const std::string& resource);

// Returns nullptr if the ARN is not one of FSx, or if the resource does not exist. `account`: the
// server's.
const file_systems::Tags* fsx_tags(const file_systems::Snapshot& snapshot,
                                   const std::string& account, const std::string& arn);
file_systems::Tags* fsx_tags(file_systems::Snapshot& snapshot, const std::string& account,
                             const std::string& arn);

}  // namespace trainyard::api
