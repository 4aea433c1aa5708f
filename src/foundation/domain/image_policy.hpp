// Decides which images jobs may run in addition to the images of the configuration. Patterns allow
// images to roles; directories allow OCI layouts.
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
  // "ghcr.io/team/*", "yard.lan:5000/train" (all tags), "containers-storage:localhost/*"; '*'
  // stands for any text.
  std::string pattern;
  std::vector<std::string> roles;  // names or ARNs (role.hpp); empty: all roles
};

struct ImagePolicy {
  std::optional<std::vector<ImageRule>> allow;              // unset: all images
  std::optional<std::vector<std::string>> oci_directories;  // unset: anywhere on the machine
};

// Checks that a job with this role may run `image`, to which `name` was resolved. Requires: `name`
// matches no key of the configuration's images (find_image_key()); those are always allowed.
Result<void> check_image(const ImagePolicy& policy, const Image& image, const std::string& name,
                         const std::string& role_arn);

// Returns true if the text matches the pattern, in which '*' stands for any text, even an empty
// one. Backtracks only to the last star, so it takes O(pattern x text) steps.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace trainyard::domain
