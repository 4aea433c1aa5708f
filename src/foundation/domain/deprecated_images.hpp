// Maps deprecated names of built-in images to their present names.
//
// Threads: pure. Errors: none.
#pragma once

#include <string_view>
#include <vector>

namespace trainyard::domain {

struct JobSpec;

// This machine's own system as a runtime.
inline constexpr std::string_view kHostImage = "trainyard/host";
// Accepted for one more version.
inline constexpr std::string_view kDeprecatedHostImage = "trainyard/machine";

// "trainyard/machine" -> "trainyard/host". Other names are returned as they are.
std::string_view present_image_name(std::string_view name);

// The deprecated names among the images of a job: its own, and those of its groups' programs.
// Lifetime: the names are constants.
std::vector<std::string_view> deprecated_images(const JobSpec& spec);

}  // namespace trainyard::domain
