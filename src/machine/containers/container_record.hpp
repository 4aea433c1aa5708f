// Who started which container, and which ids it has: a file for each, by the name of its cgroup. What a sweep goes by.
//
// Threads: callable from anywhere, of one container from one at a time. Errors: those of files.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

// Its starter alone first, so that nobody takes our claim of ids for a dead one's; they are added before there is anything
// to sweep.
Result<void> write_record(const std::string& name);
Result<void> add_ids(const std::string& name, uint32_t first_id);
// With what the runtime still knows of it. Its ids are free for others once nothing of it runs any more.
void remove_record(const std::string& name);

// Whether the process that started the container of this cgroup still runs; true where a later release's record does not
// tell us. Without a record nobody claims it.
bool starter_is_alive(const std::string& name);
// A record, or a cgroup.
bool has_container(const std::string& name);

}  // namespace trainyard::containers
