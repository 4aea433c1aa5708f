// Makes volumes: directories with a limited size. A volume is a file system in a sparse file of
// this machine.
//
// The kernel fails writes beyond its size with ENOSPC. The file occupies the space that was
// written, not the full size. It is copied from an empty file system of the same size (a template),
// which is made once: that takes a millisecond instead of fifty.
//
// Threads: callable from anywhere, from several processes at once. Errors: not_found (no
// mkfs.ext4), denied (no right to mount, no loop device), exhausted, by errno.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::os {

// Makes a volume in `file` and mounts it at `directory`, which is made if it is absent and must not
// be in use. `templates` is the directory of the templates, which all volumes share.
Result<void> make_volume(const std::string& directory, const std::string& file, uint64_t bytes,
                         const std::string& templates);
// Removes the content of a volume and its file. Does nothing if they are absent.
Result<void> remove_volume(const std::string& directory, const std::string& file);
// Returns true if the file system at `directory` has almost no free space.
bool is_full(const std::string& directory);

}  // namespace trainyard::os
