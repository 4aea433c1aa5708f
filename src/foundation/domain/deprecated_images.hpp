// Maps deprecated names of built-in images to their current names.
//
// Threads: pure. Errors: none.
#pragma once

#include <string_view>
#include <vector>

namespace trainyard::domain {

struct JobSpec;

// A runtime that is the machine's own system.
inline constexpr std::string_view kHostImage = "trainyard/host";
// Accepted until the next version.
inline constexpr std::string_view kDeprecatedHostImage = "trainyard/machine";

// Returns "trainyard/host" for "trainyard/machine", and other names unchanged.
std::string_view present_image_name(std::string_view name);

// Returns the deprecated names among the images of a job: its own, and those of its groups'
// programs.
// Lifetime: the names are constants.
std::vector<std::string_view> deprecated_images(const JobSpec& spec);

}  // namespace trainyard::domain
