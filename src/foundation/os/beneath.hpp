// Opens and makes files beneath a held directory whose content is hostile: a job may replace everything in it at any time.
//
// The kernel resolves each path (openat2) and never leaves the directory: it follows no link, not even on the way, and
// enters no other mount. A path is looked at before it is opened, so FIFOs and devices are refused unopened. Hard links
// need no check: link() refuses to cross a mount, and what a job may write is a mount of its own (docs/decisions/31).
//
// Threads: callable from anywhere. Errors: by errno, with the path in the message; invalid: the path leads through a
// link, out of the directory or onto another mount, or a regular file was asked for and something else is there.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::os {

// Opens the directory as the root of a mount of its own that is attached nowhere: "..", links and device files lead
// nowhere from there even in a call that forgets to say so, since the mount has nothing above it and is nosymfollow,
// nodev, nosuid and noexec. The mount goes with the last descriptor in it. Nothing that is mounted below the directory is
// part of it; renaming and linking between two of them fails with EXDEV. Where the kernel or the process's rights do not
// give such a mount, the descriptor is a plain one. Requires: no job can replace the directory or what lies above it.
Result<File> open_confined_directory(const std::string& path);

// The same of `path` beneath `directory`: no link is followed on the way to it, mounts are entered. invalid: one is there.
Result<File> open_confined_directory_beneath(const std::string& directory, const std::string& path);

// Paths are relative to `directory`; "" is the directory itself.
Result<File> open_directory_beneath(const File& directory, const std::string& path);
// A regular file, for reading.
Result<File> open_file_beneath(const File& directory, const std::string& path);
enum class IfThere { keep_content, truncate };
// A regular file, for writing; made with `mode` less the umask when absent. Its directory must be there.
Result<File> create_file_beneath(const File& directory, const std::string& path, IfThere if_there,
                                 unsigned mode = 0644);
// A FIFO's end, without waiting for the other one. Errors also: not_found: to be written, and nothing reads it.
enum class FifoEnd { reading, writing };
Result<File> open_fifo_beneath(const File& directory, const std::string& path, FifoEnd end);
// Makes the directories that are missing, each with `mode` less the umask, and opens the last one.
Result<File> make_directories_beneath(const File& directory, const std::string& path, unsigned mode = 0755);
// Makes or overwrites a file. Not durable.
Result<void> write_file_beneath(const File& directory, const std::string& path, std::string_view bytes,
                                unsigned mode = 0644);

}  // namespace trainyard::os
