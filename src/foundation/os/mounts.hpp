// What is mounted where on this machine.
//
// Threads: callable from anywhere. Errors: by errno.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::os {

// Pure: /proc/self/mountinfo writes blanks and the like as \040.
std::string unescape_mount_path(std::string_view text);
// Pure: mount points at or below `directory`, the last mounted first, from the text of /proc/self/mountinfo.
std::vector<std::string> mounts_below(std::string_view mountinfo, const std::string& directory);
// Mounts the directory `path` below `root` at `target`, which is made; what is mounted below it comes along.
// `path` is relative, "" the root itself; links on it may lead anywhere below the root, but not out of it,
// also when somebody changes them meanwhile. Errors also: not_found; invalid: it leads out, or is no directory.
Result<void> bind_beneath(const std::string& root, const std::string& path, const std::string& target);
// Detaches all of them. Harmless when there is none.
Result<void> unmount_below(const std::string& directory);
// From now on what this process mounts is seen by it and its children only, and ends with the last of them;
// what the machine unmounts goes here as well. Requires: this process has one thread.
Result<void> enter_mount_namespace();

}  // namespace trainyard::os
