// Decodes the documents of an OCI image: index, manifest, config, and the accounts of its
// /etc/passwd.
//
// The documents are untrusted. Limits: documents of kImageDocumentBytesMax, lists of 4,096 entries.
// A digest must be sha256, so it cannot be a path.
//
// Threads: pure functions. Errors: invalid, with the invalid value; not_found (no such tag, no
// image for this machine).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// The config that an image contains.
struct ImageConfig {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;
  std::string working_directory = "/";
  std::string user;  // "", "1000", "1000:1000", "name", "name:group"
  bool operator==(const ImageConfig&) const = default;
};

// Returns the command line of the training contract, `docker run IMAGE train`: the entrypoint of
// the request replaces that of the image, and the arguments of the request replace "train". The
// command of the image is never used.
std::vector<std::string> command_line(const std::vector<std::string>& image_entrypoint,
                                      const std::vector<std::string>& entrypoint,
                                      const std::vector<std::string>& arguments);

// limit of an index, a manifest or a config; usual ones have a few KiB
inline constexpr size_t kImageDocumentBytesMax = 4 << 20;

struct ImageReference {
  std::string digest;  // "sha256:" and 64 hex digits
  std::string media_type;
  uint64_t bytes = 0;  // from the document; 0: it has no size
};
// Returns the manifest (or index of manifests) with the tag `tag` in the index.json of an OCI
// layout.
Result<ImageReference> find_in_index(std::string_view index, std::string_view tag);
// The content of an index of manifests or of a manifest. `next` is, for an index, the manifest for
// Linux on the architecture; for a manifest, its config. `layers` are the layers of a manifest, the
// lowest first.
struct ImageDocument {
  bool is_index = false;
  ImageReference next;
  std::vector<ImageReference> layers = {};
};
// Reads an index or a manifest. `architecture`: "amd64".
Result<ImageDocument> read_manifest(std::string_view manifest, std::string_view architecture);
Result<ImageConfig> read_image_config(std::string_view config);
struct UserIds {
  uint32_t user = 0, group = 0;
};
// Looks up a user. `passwd` and `group` are the texts of these files; "": the file is missing.
Result<UserIds> find_user(std::string_view user, std::string_view passwd, std::string_view group);

}  // namespace trainyard::containers
