// A directory that holds so much and no more: a file system of its own, in a sparse file of this machine.
//
// Writing beyond its size is answered ENOSPC, by the kernel. The file takes what is written, not what is promised. Its
// first bytes are copied from a template of the same size, made once: a file system is made in a millisecond, not fifty.
//
// Threads: callable from anywhere, from several processes at once. Errors: not_found (no mkfs.ext4), denied (no right
// to mount, no loop device), exhausted, by errno.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::os {

// Mounts it at `directory`, which is made when absent and must not be in use; `file` is what it lies in. `templates`
// is a directory for what volumes share.
Result<void> make_volume(const std::string& directory, const std::string& file, uint64_t bytes,
                         const std::string& templates);
// All that is in it goes, and the file. Harmless when there is nothing.
Result<void> remove_volume(const std::string& directory, const std::string& file);
// Whether what lies at `directory` has as good as no room left.
bool is_full(const std::string& directory);

}  // namespace trainyard::os
