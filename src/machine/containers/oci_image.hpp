// Decodes the documents of an OCI image: index, manifest, config, and the accounts of its
// /etc/passwd.
//
// All of them are untrusted until decoded here. Limits: documents of kImageDocumentBytesMax, lists
// of 4,096 entries; a digest is sha256 and never a path.
//
// Threads: pure functions. Errors: invalid, naming the wrong value; not_found (no such tag, nothing
// for this machine).
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

// Returns the command line by the training contract, which is `docker run IMAGE train`: the
// request's entrypoint replaces the image's, and its arguments replace "train"; the image's own
// command is never used.
std::vector<std::string> command_line(const std::vector<std::string>& image_entrypoint,
                                      const std::vector<std::string>& entrypoint,
                                      const std::vector<std::string>& arguments);

inline constexpr size_t kImageDocumentBytesMax =
    4 << 20;  // of an index, a manifest, a config; usual ones have some KiB

struct ImageReference {
  std::string digest;  // "sha256:" and 64 hex digits
  std::string media_type;
  uint64_t bytes = 0;  // as the document has it; 0 when it does not
};
// The manifest (or index of manifests) that an OCI layout's index.json calls `tag`.
Result<ImageReference> find_in_index(std::string_view index, std::string_view tag);
// The next document: for an index of manifests, the manifest for Linux on `architecture` ("amd64");
// for a manifest, its config and its layers, the lowest first.
struct ImageDocument {
  bool is_index = false;
  ImageReference next;
  std::vector<ImageReference> layers = {};
};
Result<ImageDocument> read_manifest(std::string_view manifest, std::string_view architecture);
Result<ImageConfig> read_image_config(std::string_view config);
struct UserIds {
  uint32_t user = 0, group = 0;
};
// Looks up a user. `passwd` and `group`: the texts of those files, "" when a file is missing.
Result<UserIds> find_user(std::string_view user, std::string_view passwd, std::string_view group);

}  // namespace trainyard::containers
