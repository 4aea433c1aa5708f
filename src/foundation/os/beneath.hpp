// Opens and makes files beneath an open directory with hostile content: a job may replace
// everything in it at any time.
//
// The kernel resolves each path (openat2) and never leaves the directory: it follows no link on the
// path and enters no other mount. The type of a file is checked before it is opened, so FIFOs and
// devices are rejected without being opened. Hard links need no check: link() cannot cross a mount,
// and directories that a job may write are separate mounts (docs/decisions/31).
//
// Threads: callable from anywhere. Errors: by errno, with the path in the message; invalid, if the
// path leads through a link, out of the directory or onto another mount, or is not a regular file
// although the caller requires one.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::os {

// Opens the directory as the root of its own detached mount. "..", links and device files lead
// nowhere from there, even in a call without RESOLVE flags, because the mount has no parent and is
// nosymfollow, nodev, nosuid and noexec. The mount ends with the last descriptor in it. Mounts
// below the directory are not part of it. Renaming and linking between two such mounts fails with
// EXDEV. If the kernel or the privileges of the process permit no such mount, the directory is
// opened without one. Requires: no job can replace the directory or its parents.
Result<File> open_confined_directory(const std::string& path);

// Opens `path` beneath `directory` in the same manner. It may enter mounts, but follows no link.
// Errors also: invalid, if a link is on the path.
Result<File> open_confined_directory_beneath(const std::string& directory, const std::string& path);

// Opens a directory. Here and below, paths are relative to `directory`; "" is the directory itself.
Result<File> open_directory_beneath(const File& directory, const std::string& path);
// Opens a regular file, for reading.
Result<File> open_file_beneath(const File& directory, const std::string& path);
enum class IfThere { keep_content, truncate };
// Opens a regular file for writing. If it is absent, makes it with `mode` less the umask. Its
// directory must exist.
Result<File> create_file_beneath(const File& directory, const std::string& path, IfThere if_there,
                                 unsigned mode = 0644);
// Opens one end of a FIFO without waiting for the other end. Errors also: not_found, if it is
// opened for writing and has no reader.
enum class FifoEnd { reading, writing };
Result<File> open_fifo_beneath(const File& directory, const std::string& path, FifoEnd end);
// Makes the missing directories, each with `mode` less the umask, and opens the last one.
Result<File> make_directories_beneath(const File& directory, const std::string& path,
                                      unsigned mode = 0755);
// Makes or overwrites a file. Not durable.
Result<void> write_file_beneath(const File& directory, const std::string& path,
                                std::string_view bytes, unsigned mode = 0644);

}  // namespace trainyard::os
