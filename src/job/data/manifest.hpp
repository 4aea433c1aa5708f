// Decodes the documents that name a channel's objects: manifests, and augmented manifests, which
// have attributes too. Both come from outside.
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

// A manifest is held in memory while it is decoded, some ten times its size.
inline constexpr size_t kManifestBytesMax = 64 << 20;
// An augmented manifest's text stays in memory while the job runs.
inline constexpr size_t kAugmentedBytesMax = 256 << 20;
// The limit of one line; larger values are objects, named by a -ref.
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

// One attribute of a line: an object to be fetched (the attribute's name ends in -ref), or the
// value as text: a string unchanged, anything else as JSON.
struct Attribute {
  std::string text;
  std::optional<objects::Location> from;
};
// Returns the lines that are not blank. Errors also: there is none, or one is too long.
Result<std::vector<std::string_view>> split_lines(std::string_view text);
// Returns the attributes in the order of `names`.
Result<std::vector<Attribute>> read_augmented_line(std::string_view line,
                                                   const std::vector<std::string>& names);

}  // namespace trainyard::data
