// Finds the tags of FSx resources by ARN, for FSx's operations and for policies that read tags.
//
// Threads: pure functions. Lifetime: the result points into the snapshot.
#pragma once

#include <string>

#include "file_systems/record.hpp"

namespace trainyard::api {

// "arn:aws:fsx:REGION:ACCOUNT:file-system/fs-.."; of associations "association/fs-../dra-..", of
// tasks "task/task-..".
std::string fsx_arn(const std::string& region, const std::string& account,
                    const std::string& resource);

// nullptr: not an ARN of FSx, or it does not exist. `account`: of the server.
const file_systems::Tags* fsx_tags(const file_systems::Snapshot& snapshot,
                                   const std::string& account, const std::string& arn);
file_systems::Tags* fsx_tags(file_systems::Snapshot& snapshot, const std::string& account,
                             const std::string& arn);

}  // namespace trainyard::api
