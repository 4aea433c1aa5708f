#include "agent/image_failure.hpp"

#include <gtest/gtest.h>

#include "containers/image.hpp"

namespace trainyard::agent {
namespace {

using containers::ImageFault;
using ImageKind = domain::Image::Kind;

constexpr const char* kAwsName = "811284229777.dkr.ecr.us-east-1.amazonaws.com/linear-learner:1";
constexpr const char* kDump =
    "running skopeo: exit code 1: time=\"..\" level=fatal msg=\"pinging container registry\"";

domain::Image image_of(ImageKind kind, const std::string& source) {
  domain::Image image;
  image.kind = kind;
  image.source = source;
  return image;
}

Failure in_registry(const std::string& name, Kind kind, ImageFault fault) {
  return image_failure(image_of(ImageKind::registry, name), name, Error{kind, kDump, fault});
}

TEST(ImageFailure, AnImageOfAwsIsTheUsersFaultAndNamesTheEntryThatReplacesIt) {
  const auto failure = in_registry(kAwsName, Kind::unavailable, ImageFault::unreachable);
  EXPECT_EQ(failure.fault, domain::Fault::client);
  EXPECT_EQ(failure.message,
            std::string("The image ") + kAwsName +
                " cannot be used: the registry 811284229777.dkr.ecr.us-east-1.amazonaws.com cannot "
                "be reached from this machine; [images.\"linear-learner\"] in the server's "
                "configuration replaces it, by this machine's own system (runtime = \"machine\") "
                "or by another image (image = \"HOST/NAME:TAG\"); or `trainyard pull " +
                kAwsName + "` while the registry can be reached keeps it for later jobs");
  const auto refused = in_registry(kAwsName, Kind::denied, ImageFault::refused);
  EXPECT_EQ(refused.fault, domain::Fault::client);
  EXPECT_NE(refused.message.find("refuses to give it without a login that may read it; [images."),
            std::string::npos)
      << refused.message;
}

TEST(ImageFailure, AnUnavailableRegistryThatIsNotAwsIsRetried) {
  const auto failure =
      in_registry("yard.lan:5000/mine:v1", Kind::unavailable, ImageFault::unreachable);
  EXPECT_EQ(failure.fault, domain::Fault::internal);
  EXPECT_EQ(failure.message,
            "The image yard.lan:5000/mine:v1 cannot be used: the registry yard.lan:5000 cannot be "
            "reached from this machine; `trainyard pull yard.lan:5000/mine:v1` while the registry "
            "can be reached keeps it for later jobs");
}

TEST(ImageFailure, EachCauseHasItsRemedy) {
  EXPECT_EQ(in_registry("yard.lan/mine:v1", Kind::denied, ImageFault::refused).message,
            "The image yard.lan/mine:v1 cannot be used: the registry yard.lan refuses to give it "
            "without a login that may read it; `skopeo login yard.lan` as the server's user, then "
            "`trainyard pull yard.lan/mine:v1`");
  EXPECT_EQ(
      in_registry("yard.lan/mine:v1", Kind::not_found, ImageFault::missing).message,
      "The image yard.lan/mine:v1 cannot be used: the registry yard.lan does not have it; correct "
      "its name or tag; `trainyard pull yard.lan/mine:v1` tries it without a job");
  const auto layout = image_of(ImageKind::oci, "/srv/image:v1");
  EXPECT_EQ(
      image_failure(layout, "oci:/srv/image:v1", Error{Kind::not_found, kDump, ImageFault::missing})
          .message,
      "The image oci:/srv/image:v1 cannot be used: the OCI layout does not have it; `skopeo "
      "copy docker://HOST/NAME:TAG oci:/srv/image:v1` puts it there");
  EXPECT_EQ(image_failure(layout, "mine", Error{Kind::not_found, kDump, ImageFault::tool_missing})
                .message,
            "The image mine cannot be used: skopeo, which pulls images, is not installed on this "
            "machine; `apt-get install skopeo` installs it");
}

TEST(ImageFailure, ShortensTheTextOfAnUnknownCause) {
  const auto failure =
      image_failure(image_of(ImageKind::oci, "/srv/image"), "mine",
                    corrupt("reading the image's blob: " + std::string(5000, 'x')));
  EXPECT_EQ(failure.fault, domain::Fault::internal);
  EXPECT_TRUE(
      failure.message.starts_with("The image mine cannot be used: reading the image's blob: xxx"))
      << failure.message;
  EXPECT_LT(failure.message.size(), 400u);
}

TEST(ImageFailure, HintsOnlyAtReplacedImagesOfAws) {
  domain::Image machine;
  EXPECT_EQ(replaced_image_hint(machine, "trainyard/host"), "");
  machine.note = "The image is AWS's and is not pulled";
  EXPECT_EQ(replaced_image_hint(machine,
                                "763104351884.dkr.ecr.eu-west-1.amazonaws.com/"
                                "pytorch-training:2.1-cpu-py310"),
            ": 763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-training:2.1-cpu-py310 is an "
            "image of AWS's, and this machine's own system was used instead of it; name a program "
            "of this machine (ContainerEntrypoint) or a script (source_dir and entry_point), or "
            "give the image with [images.\"pytorch-training\"] in the server's configuration");
}

}  // namespace
}  // namespace trainyard::agent
