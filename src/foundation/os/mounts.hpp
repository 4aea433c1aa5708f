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

// Decodes a path of /proc/self/mountinfo, which writes blanks and the like as \040. Pure.
std::string unescape_mount_path(std::string_view text);
// Returns the mount points at or below `directory`, the last mounted first, from the text of
// /proc/self/mountinfo. Pure.
std::vector<std::string> mounts_below(std::string_view mountinfo, const std::string& directory);
// Mounts the directory `path` below `root`, with the mounts in it, at `target`, which is made.
// `path` is relative, "" the root itself; links on it are followed within the root, but not out of
// it, even if they change meanwhile. Errors also: not_found; invalid: it leads out of the root, or
// is not a directory.
Result<void> bind_beneath(const std::string& root, const std::string& path,
                          const std::string& target);
// Mounts `lower` with a writable layer over it at `target`; set-user-id bits and device files have
// no effect there. Files of `lower` do not change: what is written lies below the directory
// `layer`, which is emptied first. `target` and `layer` are made. Where this process is root of a
// user namespace only, directories of `lower` cannot be renamed (EXDEV).
Result<void> mount_overlay(const std::string& lower, const std::string& layer,
                           const std::string& target, bool in_user_namespace);
// Mounts a file system in memory at `directory`, which exists: of at most `bytes` bytes and `files`
// files, itself included. Set-user-id bits and device files have no effect there.
Result<void> mount_memory(const std::string& directory, uint64_t bytes, uint64_t files);
// Detaches the mount at `directory`. Harmless when there is none.
Result<void> unmount(const std::string& directory);
// Detaches all mounts at or below it. Harmless when there are none.
Result<void> unmount_below(const std::string& directory);
// From now on mounts of this process are visible to it and its children only, and end with the last
// of them; unmounts of the machine propagate here as well. Requires: this process has one thread.
Result<void> enter_mount_namespace();

}  // namespace trainyard::os
