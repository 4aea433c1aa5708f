#include "domain/image_policy.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

const std::string kRole = "arn:aws:iam::123456789012:role/team/Trainer";

bool allows(const ImagePolicy& policy, const std::string& name, const std::string& role = kRole) {
  const auto checked = check_image(policy, *resolve_image({}, name), name, role);
  if (!checked) {
    EXPECT_EQ(checked.error().kind, Kind::denied) << checked.error().message;
  }
  return bool(checked);
}

TEST(ImagePolicy, WithoutRulesAllowsEveryImage) {
  for (const char* name :
       {"ghcr.io/a/b:1", "oci:/images/a:latest", "containers-storage:localhost/a"})
    EXPECT_TRUE(allows({}, name)) << name;
}

TEST(ImagePolicy, AllowsImagesByPatterns) {
  const ImagePolicy policy{{{{"ghcr.io/team/*", {}},
                             {"yard.lan:5000/train", {}},
                             {"containers-storage:localhost/*", {}}}},
                           {}};
  const struct {
    const char* name;
    bool allowed;
  } cases[] = {
      {"ghcr.io/team/a:1", true},
      {"docker://ghcr.io/team/a", true},
      {"ghcr.io/team/a/b@sha256:0000000000000000000000000000000000000000000000000000000000000000",
       true},
      {"ghcr.io/team2/a", false},
      {"ghcr.io/other", false},
      {"ghcr.io.evil.com/team/a", false},
      {"evil.com/ghcr.io/team/a", false},
      {"ghcr.io/team/../other/a", false},
      {"ghcr.io/team/./a", false},
      {"yard.lan:5000/train:v7", true},
      {"yard.lan:5000/train2", false},
      {"yard.lan/train", false},
      {"containers-storage:localhost/mine", true},
      {"containers-storage:docker.io/library/debian", false},
      {"oci:/images/a:latest", false},
  };
  for (const auto& each : cases) EXPECT_EQ(allows(policy, each.name), each.allowed) << each.name;
}

TEST(ImagePolicy, AllowsImagesToTheRolesOfARule) {
  const ImagePolicy policy{{{{"ghcr.io/a/*", {"Trainer"}},
                             {"ghcr.io/b/*", {"arn:aws:iam::123456789012:role/other/*"}},
                             {"ghcr.io/c/*", {"Tr*", "Batch*"}}}},
                           {}};
  EXPECT_TRUE(allows(policy, "ghcr.io/a/x"));
  EXPECT_FALSE(allows(policy, "ghcr.io/b/x"));
  EXPECT_TRUE(allows(policy, "ghcr.io/c/x"));
  EXPECT_FALSE(allows(policy, "ghcr.io/a/x", ""));
  EXPECT_FALSE(allows(policy, "ghcr.io/a/x", "arn:aws:iam::123456789012:role/Trainer2"));
  const auto refused = check_image(policy, *resolve_image({}, "ghcr.io/b/x"), "ghcr.io/b/x", kRole);
  EXPECT_EQ(refused.error().message,
            "image 'ghcr.io/b/x' is not allowed for the role '" + kRole +
                "': the server's config allows it ghcr.io/a/*, ghcr.io/c/*");
  EXPECT_FALSE(allows({std::vector<ImageRule>(), {}}, "ghcr.io/a/x"))
      << "an empty list allows only the images of the configuration";
}

TEST(ImagePolicy, AllowsLayoutsBelowTheDirectories) {
  const ImagePolicy policy{{}, {{"/srv/images", "/data/"}}};
  EXPECT_TRUE(allows(policy, "oci:/srv/images/a:latest"));
  EXPECT_TRUE(allows(policy, "oci:/data/a/b:latest"));
  EXPECT_TRUE(allows(policy, "ghcr.io/a/x"));
  for (const char* name :
       {"oci:/srv/images2/a:latest", "oci:/srv/images:latest", "oci:/srv/images/../../etc:latest",
        "oci:srv/images/a:latest", "oci:/etc:/srv/images/a", "oci:/srv/images/..:latest",
        "oci:/srv/images/x:y/../../../etc", "oci:/srv/images/a/../../b",
        "oci:/srv/images/./../x:a"})
    EXPECT_FALSE(allows(policy, name)) << name;
}

TEST(ImagePolicy, StarsMatchAnyText) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches_pattern("a*b*c", "a-b-b-cd"));
  EXPECT_FALSE(matches_pattern("a", ""));
  EXPECT_TRUE(matches_pattern("**a", "xa"));
}

}  // namespace
}  // namespace trainyard::domain
