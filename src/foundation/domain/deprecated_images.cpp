#include "domain/deprecated_images.hpp"

#include <algorithm>

#include "domain/job.hpp"

namespace trainyard::domain {

std::string_view current_image_name(std::string_view name) {
  return name == kDeprecatedHostImage ? kHostImage : name;
}

std::vector<std::string_view> deprecated_images(const JobSpec& spec) {
  const bool used = spec.image == kDeprecatedHostImage ||
                    std::ranges::any_of(spec.groups, [](const InstanceGroup& group) {
                      return group.program && group.program->image == kDeprecatedHostImage;
                    });
  if (!used) return {};
  return {kDeprecatedHostImage};
}

}  // namespace trainyard::domain
