// Decides which images jobs may run in addition to those of the configuration: by patterns, each
// for some roles, and by directories for OCI layouts.
//
// Threads: pure. Errors: denied, with the allowed images.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/image.hpp"

namespace trainyard::domain {

struct ImageRule {
  // '*' stands for any text. "ghcr.io/team/*", "yard.lan:5000/train" (all its tags),
  // "containers-storage:localhost/*".
  std::string pattern;
  std::vector<std::string> roles;  // names or ARNs (role.hpp); empty: every role
};

struct ImagePolicy {
  std::optional<std::vector<ImageRule>> allow;              // unset: every image
  std::optional<std::vector<std::string>> oci_directories;  // unset: anywhere on the machine
};

// Checks that a job with that role may run the image that `name` stands for. Requires: `name`
// matches no key of the configuration's images (see find_image_key()); those are always allowed.
Result<void> check_image(const ImagePolicy& policy, const Image& image, const std::string& name,
                         const std::string& role_arn);

// True if the text matches the pattern, in which '*' stands for any text, also empty. It backtracks
// to the last star only, so it takes O(pattern x text) steps.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace trainyard::domain
