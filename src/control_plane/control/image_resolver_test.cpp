#include "control/image_resolver.hpp"

#include <gtest/gtest.h>

namespace trainyard::control {
namespace {

struct Images {
  std::map<std::string, domain::Image> table;
  ImageResolver resolver{table};
  Images() { table["named"].source = "first"; }
};

TEST(ImageResolver, ResolvesANameOnce) {
  Images images;
  const auto admitted = images.resolver.resolve("named");
  ASSERT_TRUE(admitted);
  images.table.clear();
  const auto started = images.resolver.resolve("named");
  ASSERT_TRUE(started);
  EXPECT_EQ(*admitted, *started) << "the name was resolved again";
  EXPECT_EQ((*started)->image.source, "first");
}

TEST(ImageResolver, DistinguishesImagesOfTheConfigFromOthers) {
  Images images;
  EXPECT_TRUE((*images.resolver.resolve("named"))->configured);
  const auto other = images.resolver.resolve("ghcr.io/team/a:1");
  ASSERT_TRUE(other);
  EXPECT_FALSE((*other)->configured);
  EXPECT_EQ((*other)->image.kind, domain::Image::Kind::registry);
}

TEST(ImageResolver, KeepsNoErrors) {
  Images images;
  const auto unknown = images.resolver.resolve("unknown");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Kind::invalid);
  images.table["unknown"] = {};
  EXPECT_TRUE(images.resolver.resolve("unknown"));
}

TEST(ImageResolver, RemembersALimitedNumberOfNames) {
  Images images;
  ASSERT_TRUE(images.resolver.resolve("named"));
  images.table["named"].source = "second";
  for (int i = 0; i < 1'000; ++i)
    ASSERT_TRUE(images.resolver.resolve("ghcr.io/a/" + std::to_string(i)));
  EXPECT_EQ((*images.resolver.resolve("named"))->image.source, "second")
      << "it was removed, and resolved again";
}

}  // namespace
}  // namespace trainyard::control
