#include "domain/image_sources.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

const ImageSources kSources = {{{"registry.lan:5000", "team-a", "secret-a", {"ann"}, {}},
                                {"registry.lan:5000", "team-b", "secret-b", {"bob"}, {"Train*"}},
                                {"open.lan", "all", "secret-c", {}, {}}},
                               {"/images"}};

Image image(const std::string& name) { return *resolve_image({}, name); }

std::string login_of(const std::string& name, const std::string& user,
                     const std::string& role = "") {
  const auto found = find_login(kSources, image(name), user, role);
  if (!found) return found.error().kind == Kind::denied ? "denied" : "error";
  return *found ? (*found)->username : "none";
}

TEST(FindLogin, ReturnsTheFirstLoginThatTheJobMayUse) {
  EXPECT_EQ(login_of("registry.lan:5000/a/train:v1", "ann"), "team-a");
  EXPECT_EQ(login_of("docker://registry.lan:5000/a/train:v1", "bob"), "team-b");
  EXPECT_EQ(
      login_of("registry.lan:5000/a/train:v1", "eve", "arn:aws:iam::123456789012:role/Training"),
      "team-b");
  EXPECT_EQ(login_of("open.lan/train:v1", "eve"), "all");
}

TEST(FindLogin, DeniesOtherPrincipals) {
  EXPECT_EQ(login_of("registry.lan:5000/a/train:v1", "eve"), "denied");
  EXPECT_EQ(login_of("registry.lan:5000/a/train:v1", ""), "denied");
  EXPECT_EQ(
      login_of("registry.lan:5000/a/train:v1", "eve", "arn:aws:iam::123456789012:role/x/Other"),
      "denied");
  const auto denied = find_login(kSources, image("registry.lan:5000/a/train:v1"), "eve", "");
  EXPECT_EQ(denied.error().message.find("secret"), std::string::npos);
}

TEST(FindLogin, ReturnsNoneForOtherSources) {
  EXPECT_EQ(login_of("registry.lan:5001/a/train:v1", "eve"), "none");
  EXPECT_EQ(login_of("oci:/images/x:v1", "eve"), "none");
  EXPECT_EQ(login_of("containers-storage:localhost/x", "eve"), "none");
}

TEST(ImageSources, EncodesTheDocumentedFormat) {
  const ImageSources sources = {{{"registry.lan:5000", "team-b", "secret-b", {"bob"}, {"Train*"}}},
                                {"/images"}};
  EXPECT_EQ(dump(to_json(sources)),
            R"({"logins":[{"host":"registry.lan:5000","password":"secret-b",)"
            R"("roles":["Train*"],"username":"team-b","users":["bob"]}],)"
            R"("oci_directories":["/images"]})");
  EXPECT_EQ(dump(to_json(ImageSources{})), R"({"logins":[],"oci_directories":[]})");
}

TEST(ImageSources, RejectsALoginWithoutLists) {
  Json json = to_json(kSources);
  json["logins"][0].erase("users");
  const auto read = image_sources_from_json(json);
  EXPECT_EQ(read.error().kind, Kind::corrupt);
  EXPECT_EQ(read.error().message.find("secret"), std::string::npos);
}

TEST(ImageSources, DecodesToTheEncodedValue) {
  const auto read = image_sources_from_json(to_json(kSources));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(kSources));
  EXPECT_EQ(image_sources_from_json(Json::object()).error().kind, Kind::corrupt);
  EXPECT_EQ(image_sources_from_json(Json::array()).error().kind, Kind::corrupt);
}

}  // namespace
}  // namespace trainyard::domain
