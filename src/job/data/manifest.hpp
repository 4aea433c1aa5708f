// Decodes the documents that name a channel's objects: manifests, and augmented manifests, which
// also have attributes. Users write both.
//
//   manifest, one JSON document
//       [{"prefix": "s3://bucket/some/"}, "a/1.csv", "a/2.csv"]
//   augmented manifest, one JSON object a line
//       {"source-ref": "s3://bucket/1.jpg", "class": "0"}
//
// Threads: pure. Errors: invalid, naming entry, line or attribute.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::data {

// The limit of a manifest, whose decoding needs some ten times its size of memory.
inline constexpr size_t kManifestBytesMax = 64 << 20;
// The limit of an augmented manifest, whose text stays in memory while the job runs.
inline constexpr size_t kAugmentedBytesMax = 256 << 20;
// The limit of one line. Larger values must be objects, which a -ref attribute names.
inline constexpr size_t kAugmentedLineBytesMax = 4 << 20;

struct ManifestEntry {
  objects::Location from;
  std::string rest;  // the part behind the prefix
};
struct Manifest {
  std::string prefix_uri;
  std::vector<ManifestEntry> entries;  // at least one
};
Result<Manifest> read_manifest(std::string_view text);

// One attribute of a line. If its name ends in -ref, an object to fetch; otherwise the value as
// text: a string unchanged, anything else as JSON.
struct Attribute {
  std::string text;
  std::optional<objects::Location> from;
};
// Returns the lines that are not blank. Errors also: all lines are blank, or one is too long.
Result<std::vector<std::string_view>> split_lines(std::string_view text);
// Returns the attributes in the order of `names`.
Result<std::vector<Attribute>> read_augmented_line(std::string_view line,
                                                   const std::vector<std::string>& names);

}  // namespace trainyard::data
