// Maps deprecated names of built-in images to their current names.
//
// Threads: pure. Errors: none.
#pragma once

#include <string_view>
#include <vector>

namespace trainyard::domain {

struct JobSpec;

// The image of jobs that run in the machine's own file system instead of a container image.
inline constexpr std::string_view kHostImage = "trainyard/host";
// The deprecated name of kHostImage; the next release will reject it.
inline constexpr std::string_view kDeprecatedHostImage = "trainyard/machine";

// Returns "trainyard/host" for "trainyard/machine", and other names unchanged.
std::string_view current_image_name(std::string_view name);

// Returns the deprecated names among the images of a job: its own image, and the images of its
// groups' programs. Lifetime: the names are constants.
std::vector<std::string_view> deprecated_images(const JobSpec& spec);

}  // namespace trainyard::domain
