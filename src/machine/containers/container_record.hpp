// Records the starter and the ids of each container: a file for each, by the name of its cgroup. A
// sweep reads them.
//
// Threads: callable from anywhere; one container by one caller at a time. Errors: those of files.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

// Writes the starter alone, so that its claim of ids does not look like that of a dead process; the
// ids are added before there is anything to sweep.
Result<void> write_record(const std::string& name);
Result<void> add_ids(const std::string& name, uint32_t first_id);
// Removes the record and the runtime's state. The ids are free for others once no process of the
// container runs.
void remove_record(const std::string& name);

// True while the process that started the container of this cgroup runs, and for records of later
// releases, which cannot be read. False without a record.
bool starter_is_alive(const std::string& name);
// True if there is a record or a cgroup.
bool has_container(const std::string& name);

}  // namespace trainyard::containers
