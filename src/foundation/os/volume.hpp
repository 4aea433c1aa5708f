// Makes a directory of a limited size: a file system of its own, in a sparse file of this machine.
//
// Writes beyond its size fail with ENOSPC, in the kernel. The file takes the space that is written,
// not the full size. Its first bytes are copied from a template of the same size, made once: this
// takes a millisecond instead of fifty.
//
// Threads: callable from anywhere, from several processes at once. Errors: not_found (no
// mkfs.ext4), denied (no right to mount, no loop device), exhausted, by errno.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::os {

// Mounts a volume at `directory`, which is made when absent and must not be in use. `file` backs
// it. `templates` is a directory of files that volumes share.
Result<void> make_volume(const std::string& directory, const std::string& file, uint64_t bytes,
                         const std::string& templates);
// Removes its content and the file. Harmless when absent.
Result<void> remove_volume(const std::string& directory, const std::string& file);
// True if the file system at `directory` has almost no free space.
bool is_full(const std::string& directory);

}  // namespace trainyard::os
