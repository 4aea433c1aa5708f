// Decides which images jobs may run in addition to those that the configuration names: by patterns, each for some roles, and by
// the directories that OCI layouts may lie in.
//
// Threads: pure. Errors: denied, with what is allowed.
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
  std::vector<std::string> roles;  // names or ARNs, with '*' too; empty: every role
};

struct ImagePolicy {
  std::optional<std::vector<ImageRule>> allow;              // unset: every image
  std::optional<std::vector<std::string>> oci_directories;  // unset: anywhere on the machine
};

// Whether a job of that role may run the image. What the config's `images` names is allowed: `images` as of
// resolve_image(). Errors also: invalid, of a name that resolve_image() does not know.
Result<void> check_image(const ImagePolicy& policy, const std::map<std::string, Image>& images,
                         const std::string& name, const std::string& role_arn);

// The same of all images of a job: its own, and those of its groups' programs.
Result<void> check_images(const ImagePolicy& policy, const std::map<std::string, Image>& images,
                          const JobSpec& spec);

// Whether the text is the pattern, in which '*' stands for any text, also none. Steps back to the last star only, so it
// takes at most their product of steps.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace trainyard::domain
