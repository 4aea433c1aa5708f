#include "domain/deprecated_images.hpp"

#include <gtest/gtest.h>

#include "domain/image.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {
namespace {

TEST(DeprecatedImages, ResolvesToTheCurrentImage) {
  std::map<std::string, Image> images;
  images["trainyard/host"].note = "the host's own system";
  for (const char* name : {"trainyard/host", "trainyard/machine"}) {
    const auto image = resolve_image(images, name);
    ASSERT_TRUE(image) << name;
    EXPECT_EQ(image->note, "the host's own system") << name;
  }
  EXPECT_EQ(current_image_name("trainyard/trainer"), "trainyard/trainer");
}

TEST(DeprecatedImages, FindsAllDeprecatedNamesOfAJob) {
  JobSpec spec;
  spec.image = "trainyard/host";
  spec.groups.resize(1);
  EXPECT_TRUE(deprecated_images(spec).empty());
  spec.groups[0].program.emplace().image = "trainyard/machine";
  EXPECT_EQ(deprecated_images(spec).size(), 1u);
  spec.groups[0].program.reset();
  spec.image = "trainyard/machine";
  EXPECT_EQ(deprecated_images(spec).size(), 1u);
}

}  // namespace
}  // namespace trainyard::domain
