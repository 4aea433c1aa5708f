// Unpacks each layer of an OCI image into a separate tree, and combines the trees by hard links.
//
// The directory of a layer contains `tree`, the content of the archive, in which the markers of
// removed files (".wh.NAME") are files; `directories`, the names of directories that the archive
// lists (other directories are only on the path of a file, without a mode or an owner); and
// `bytes`, its share of the disk: the larger of its size and the size of its inodes. Trees are
// immutable, so the roots of many images may share their files.
//
// Archives are untrusted. GNU tar unpacks them; it neither follows links out of the tree nor
// accepts names with "..". Combining moves from one open directory to the next and follows no link.
//
// Threads: callable from anywhere, for one directory by one caller at a time. Errors: corrupt,
// invalid (the archive), exhausted (disk), cancelled (took too long), internal.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

// The limits of one unpacked layer, whose archive may be small.
struct LayerLimits {
  // size of the unpacked archive; ten times the size of the largest frameworks
  uint64_t bytes_max = uint64_t{128} << 30;
  // files and directories, each with an inode; ten times the number of the largest frameworks
  uint64_t entries_max = 2'000'000;
};
// The share of a disk that each inode uses, even if its file is small: ext4 makes one inode per 16
// KiB.
inline constexpr uint64_t kBytesPerInode = 16 << 10;

// Makes `directory`, which must not exist, from an archive: plain, or compressed by gzip or zstd.
// Removes it on failure. Errors also: exhausted, if the layer exceeds the limits.
Result<void> unpack_layer(const std::string& archive, const std::string& directory,
                          const LayerLimits& limits = {});

// Links the files of an unpacked layer into `root`, a directory of the same file system, over its
// existing content.
Result<void> link_layer_into(const std::string& layer_directory, const std::string& root);

// Returns the size of a file; 0 if it cannot be read.
uint64_t file_bytes(const std::string& path);

// Returns the share of the disk of an unpacked layer; 0 if it is unknown.
uint64_t layer_bytes(const std::string& layer_directory);

}  // namespace trainyard::containers
