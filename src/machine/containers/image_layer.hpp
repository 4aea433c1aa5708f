// The layers of an OCI image: each unpacked into a tree of its own, then laid over each other as hard links.
//
// A layer's directory holds `tree`, what its archive holds with the marks of removed files (".wh.NAME") as files, and
// `directories`, the names of those that the archive names itself: others are only on the way to a file, and say nothing
// of modes and owners; `bytes` says how much it is. Trees are never written to once they are there, so that the roots of many images may share their
// files.
//
// The archive is what somebody else wrote: GNU tar unpacks it, which neither follows links out of the tree nor takes
// names with "..". Laying goes from one open directory to the next and follows no link.
//
// Threads: callable from anywhere; one directory by one caller at a time. Errors: corrupt, invalid (the archive),
// exhausted (disk), cancelled (took too long), internal.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

// What one layer may become, whatever little its archive is.
struct LayerLimits {
  uint64_t bytes_max =
      uint64_t{128} << 30;           // of the unpacked archive: the largest frameworks' have a tenth of it
  uint64_t entries_max = 2'000'000;  // files and directories, each an inode: likewise
};

// Makes `directory`, which must not be there, from an archive: plain, or packed by gzip or zstd. On failure nothing of
// it stays. Errors also: exhausted, beyond the limits.
Result<void> unpack_layer(const std::string& archive, const std::string& directory,
                          const LayerLimits& limits = {});

// Lays an unpacked layer over what `root`, a directory of the same file system, holds already.
Result<void> lay_over(const std::string& layer_directory, const std::string& root);

// What an unpacked layer holds; 0 when it cannot be told.
uint64_t layer_bytes(const std::string& layer_directory);

}  // namespace trainyard::containers
