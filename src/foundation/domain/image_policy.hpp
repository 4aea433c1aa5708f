// Decides which images jobs may run in addition to those of the configuration: by patterns, each for some roles, and by
// directories for OCI layouts.
//
// Threads: pure. Errors: denied, with the allowed images.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/image.hpp"

namespace trainyard::domain {

struct JobSpec;

struct ImageRule {
  // '*' stands for any text. "ghcr.io/team/*", "yard.lan:5000/train" (all its tags), "containers-storage:localhost/*".
  std::string pattern;
  std::vector<std::string> roles;  // names or ARNs, also with '*'; empty: every role
};

struct ImagePolicy {
  std::optional<std::vector<ImageRule>> allow;              // unset: every image
  std::optional<std::vector<std::string>> oci_directories;  // unset: anywhere on the machine
};

// Checks that a job with that role may run the image. Images that match a key of `images` (see resolve_image()) are
// always allowed. Errors also: invalid, for a name that resolve_image() rejects.
Result<void> check_image(const ImagePolicy& policy, const std::map<std::string, Image>& images,
                         const std::string& name, const std::string& role_arn);

// Checks all images of a job: its own, and those of its groups' programs.
Result<void> check_images(const ImagePolicy& policy, const std::map<std::string, Image>& images,
                          const JobSpec& spec);

// True if the text matches the pattern, in which '*' stands for any text, also empty. It backtracks to the last star
// only, so it takes O(pattern x text) steps.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace trainyard::domain
