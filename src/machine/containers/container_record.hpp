// Records the starter and the ids of each container in a file with the name of its cgroup, which
// sweep_containers() reads.
//
// Threads: callable from anywhere, for one container by one caller at a time. Errors: those of
// files.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

// Writes a record with the starter only. It exists before ids are claimed, so that the claim is not
// regarded as that of a dead process. add_ids() adds the ids before the container exists.
Result<void> write_record(const std::string& name);
Result<void> add_ids(const std::string& name, uint32_t first_id);
// Removes the record and the state of the runtime. The ids are free for others once no process of
// the container runs.
void remove_record(const std::string& name);

// Returns true while the process that started the container of this cgroup runs, and for records of
// later releases, which cannot be read; false without a record.
bool starter_is_alive(const std::string& name);
// Returns true if there is a record or a cgroup.
bool has_container(const std::string& name);

}  // namespace trainyard::containers
