// Lists, makes and removes mounts of this machine.
//
// Threads: callable from anywhere. Errors: by errno.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::os {

// Decodes a path in /proc/self/mountinfo, where blanks and similar characters are escaped as \040.
// Pure.
std::string unescape_mount_path(std::string_view text);
// Returns the mount points at or below `directory`, the last mounted first, from the text of
// /proc/self/mountinfo. Pure.
std::vector<std::string> mounts_below(std::string_view mountinfo, const std::string& directory);
// Mounts the directory `path` below `root`, with the mounts in it, at `target`, which is made.
// `path` is relative; "" is the root itself. Links on it are followed within the root, but not out
// of it, even if they change meanwhile. Errors also: not_found; invalid, if the path leads out of
// the root or is not a directory.
Result<void> bind_beneath(const std::string& root, const std::string& path,
                          const std::string& target);
// Mounts `lower` with a writable layer over it at `target`. Set-user-id bits and device files have
// no effect there. Files of `lower` do not change: written files are stored below the directory
// `layer`, which is emptied first. `target` and `layer` are made. If this process is root only in a
// user namespace, directories of `lower` cannot be renamed (EXDEV).
Result<void> mount_overlay(const std::string& lower, const std::string& layer,
                           const std::string& target, bool in_user_namespace);
// Mounts a file system in memory at the existing `directory`. `bytes` limits the size of its files,
// `files` their number including the root directory. Set-user-id bits and device files have no
// effect there.
Result<void> mount_memory(const std::string& directory, uint64_t bytes, uint64_t files);
// Detaches the mount at `directory`. Does nothing if there is none.
Result<void> unmount(const std::string& directory);
// Detaches all mounts at or below `directory`. Does nothing if there are none.
Result<void> unmount_below(const std::string& directory);
// Moves this process to its own mount namespace: from now on its mounts are visible only to it and
// its children, and end with the last of them. Unmounts in the machine's namespace still propagate
// to it. Requires: this process has one thread.
Result<void> enter_mount_namespace();

}  // namespace trainyard::os
