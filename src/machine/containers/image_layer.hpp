// Unpacks the layers of an OCI image, each into a tree of its own, and combines them by hard links.
//
// A layer's directory holds `tree`, the archive's content with the markers of removed files
// (".wh.NAME") as files; `directories`, the names of the directories that the archive lists itself
// (others only lead to a file, without a mode or an owner); and `bytes`, its share of the disk:
// its size, or that of its inodes if they are the larger part of all. Trees are immutable, so that
// the roots of many images may share their files.
//
// Archives are untrusted: GNU tar unpacks them, which neither follows links out of the tree nor
// accepts names with "..". Combining goes from one open directory to the next and follows no link.
//
// Threads: callable from anywhere; one directory by one caller at a time. Errors: corrupt, invalid
// (the archive), exhausted (disk), cancelled (took too long), internal.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

// Limits of one unpacked layer, however small its archive is.
struct LayerLimits {
  uint64_t bytes_max =
      // of the unpacked archive: ten times that of the largest frameworks
      uint64_t{128} << 30;
  uint64_t entries_max = 2'000'000;  // files and directories, each an inode: likewise
};
// The share of a disk that each inode takes, however small its file is: ext4 makes one for this
// number of bytes.
inline constexpr uint64_t kBytesPerInode = 16 << 10;

// Makes `directory`, which must not exist, from an archive: plain, or compressed by gzip or zstd.
// On failure nothing of it stays. Errors also: exhausted, beyond the limits.
Result<void> unpack_layer(const std::string& archive, const std::string& directory,
                          const LayerLimits& limits = {});

// Links the files of an unpacked layer into `root`, a directory of the same file system, over its
// present content.
Result<void> lay_over(const std::string& layer_directory, const std::string& root);

// The size of a file; 0 when it cannot be read.
uint64_t file_bytes(const std::string& path);

// The share of the disk of an unpacked layer; 0 when it is unknown.
uint64_t layer_bytes(const std::string& layer_directory);

}  // namespace trainyard::containers
