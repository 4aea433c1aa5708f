#include "policy/identity_records.hpp"

#include <gtest/gtest.h>

#include "policy/identity_changes.hpp"
#include "policy/identity_seed.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {
namespace {

constexpr const char* kAccount = "123456789012";
constexpr const char* kAllow =
    R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]})";

Result<std::string> opened(const std::string& sealed, const std::string&) { return sealed; }

Document document() { return {kAllow, *parse_policy(kAllow, PolicyKind::identity)}; }

User ann() {
  User user;
  user.name = "ann";
  user.id = "AIDA1";
  user.created = from_milliseconds(7);
  user.tags = {{"team", "vision"}};
  user.groups = {"crew"};
  user.inline_policies.emplace("p", document());
  user.attached = {"arn:aws:iam::aws:policy/AmazonS3FullAccess"};
  user.boundary = "arn:aws:iam::aws:policy/PowerUserAccess";
  return user;
}

Identities with_all() {
  Identities identities = *identities_of(kAccount, {});
  Group crew;
  crew.name = "crew";
  identities.put(crew);
  identities.put(ann());
  Role role;
  role.name = "Train";
  role.trust = {built_in_trust(kAccount),
                *parse_policy(built_in_trust(kAccount), PolicyKind::trust)};
  role.description = "of jobs";
  role.max_session_seconds = 900;
  identities.put(role);
  InstanceProfile profile;
  profile.name = "machines";
  profile.path = "/lab/";
  profile.id = "AIPA1";
  profile.tags = {{"team", "vision"}};
  profile.role = "Train";
  identities.put(profile);
  VersionedPolicy policy;
  policy.name = "team";
  policy.arn = identities.policy_arn("/", "team");
  policy.versions = {{1, document(), {}}, {3, document(), {}}};
  policy.default_version = policy.last_version = 3;
  identities.put(policy);
  AccessKey key;
  key.id = "AKIA1";
  key.user = "ann";
  key.secret = key.sealed_secret = "sealed";
  identities.put(key);
  identities.put(BucketPolicy{"data", document()});
  return identities;
}

TEST(IdentityRecords, RoundTrip) {
  const Identities before = *identities_of(kAccount, {}), after = with_all();
  const auto changes = difference(before, after);
  ASSERT_EQ(changes.size(), 7u) << "built-in policies are not written";
  Identities again = before;
  for (const RecordChange& change : changes)
    ASSERT_TRUE(add_record(again, change.name, *change.document, opened)) << change.name.second;
  const auto repeated = difference(before, again);
  ASSERT_EQ(repeated.size(), changes.size());
  for (size_t i = 0; i < changes.size(); ++i)
    EXPECT_EQ(*repeated[i].document, *changes[i].document);
  EXPECT_EQ(again.policies_of(*again.find_user("ann")).size(), 2u);
  EXPECT_EQ(again.find_key("AKIA1")->secret, "sealed");
}

// Compares with the bytes that existing ledgers contain.
TEST(IdentityRecords, KeepTheirBytes) {
  const std::string text = dump(Json(kAllow));
  const std::map<std::string, std::string> golden = {
      {"user",
       R"({"attached":["arn:aws:iam::aws:policy/AmazonS3FullAccess"],)"
       R"("boundary":"arn:aws:iam::aws:policy/PowerUserAccess","created":7,"groups":["crew"],"id":"AIDA1",)"
       R"("inline":{"p":)" +
           text + R"(},"path":"/","tags":[{"key":"team","value":"vision"}]})"},
      {"group", R"({"created":0,"id":"","path":"/"})"},
      {"role",
       R"({"created":0,"description":"of jobs","id":"","max_session_seconds":900,"path":"/",)"
       R"("trust":)" +
           dump(Json(built_in_trust(kAccount))) + "}"},
      {"instance_profile", R"({"created":0,"id":"AIPA1","path":"/lab/","role":"Train",)"
                           R"("tags":[{"key":"team","value":"vision"}]})"},
      {"policy", R"({"created":0,"default_version":3,"description":"","id":"","last_version":3,)"
                 R"("name":"team","path":"/","updated":0,"versions":[{"created":0,"document":)" +
                     text + R"(,"number":1},{"created":0,"document":)" + text +
                     R"(,"number":3}]})"},
      {"access_key", R"({"active":true,"created":0,"sealed_secret":"sealed","user":"ann"})"},
      {"bucket_policy", R"({"document":)" + text + "}"},
  };
  const auto changes = difference(*identities_of(kAccount, {}), with_all());
  ASSERT_EQ(changes.size(), golden.size());
  for (const RecordChange& change : changes)
    EXPECT_EQ(dump(*change.document), golden.at(change.name.first));
}

TEST(IdentityRecords, IncludeRemovals) {
  const Identities before = with_all();
  Identities after = before;
  after.remove_user("ann");
  const auto changes = difference(before, after);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes.front().name, RecordName("user", "ann"));
  EXPECT_FALSE(changes.front().document);
}

TEST(IdentityRecords, RejectInvalidRecordsAndAddNothing) {
  Identities identities = *identities_of(kAccount, {});
  for (const Json& broken :
       {Json::object(), Json{{"path", 7}}, Json{{"path", "/"}, {"groups", 7}},
        Json{{"path", nullptr}}, Json{{"path", "/"}, {"inline", {{"p", 7}}}},
        Json{{"path", "/"}, {"tags", {7}}}, Json{{"path", "/"}, {"tags", {{{"key", "k"}}}}}})
    EXPECT_FALSE(add_record(identities, {"user", "ann"}, broken, opened)) << broken;
  EXPECT_FALSE(add_record(identities, {"policy", "arn"}, {{"name", "n"}, {"path", "/"}}, opened));
  const auto changes = difference(identities, with_all());
  for (const auto& [name, required] : std::map<std::string, std::vector<std::string>>{
           {"group", {"path"}},
           {"role", {"path", "trust"}},
           {"instance_profile", {"path"}},
           {"policy", {"name", "path", "versions"}},
           {"access_key", {"user", "sealed_secret", "active"}},
           {"bucket_policy", {"document"}}})
    for (const RecordChange& change : changes)
      for (const std::string& member : required) {
        if (change.name.first != name) continue;
        Json broken = *change.document;
        broken[member] = nullptr;
        EXPECT_FALSE(add_record(identities, change.name, broken, opened)) << broken;
      }
  EXPECT_TRUE(identities.groups().empty());
  EXPECT_TRUE(identities.users().empty());
  EXPECT_TRUE(add_record(identities, {"another_kind", "x"}, Json::object(), opened));
}

TEST(IdentityRecords, DenyEverythingWithInvalidDocuments) {
  Identities identities = *identities_of(kAccount, {});
  ASSERT_TRUE(add_record(
      identities, {"user", "ann"},
      {{"path", "/"}, {"inline", {{"p", "from the future"}}}, {"groups", {"gone"}}}, opened));
  const auto policies = identities.policies_of(*identities.find_user("ann"));
  ASSERT_EQ(policies.size(), 2u);
  EXPECT_EQ(policies[0], deny_everything().get());
  EXPECT_EQ(policies[1], deny_everything().get())
      << "a group that is not there might have denied it";
}

TEST(IdentitySeeds, HideStoredRecordsOfTheSameName) {
  IdentitySeed seed;
  seed.users = {{.name = "Ann", .policies = {"AmazonS3FullAccess"}}};
  Identities identities = *identities_of(kAccount, seed);
  ASSERT_TRUE(add_record(identities, {"user", "ann"}, {{"path", "/"}}, opened));
  EXPECT_EQ(identities.users().size(), 1u);
  EXPECT_TRUE(identities.find_user("Ann")->from_config);
}

TEST(IdentitySeeds, ReportErrorsWithTheEntry) {
  const auto fault = [](IdentitySeed seed) {
    const auto made = identities_of(kAccount, seed);
    return made ? "none" : made.error().message;
  };
  EXPECT_NE(fault({.users = {{.name = "ann", .policies = {"Nope"}}}})
                .find("user ann: unknown policy Nope"),
            std::string::npos);
  EXPECT_NE(fault({.users = {{.name = "ann", .groups = {"nope"}}}}).find("unknown group nope"),
            std::string::npos);
  EXPECT_NE(fault({.users = {{.name = "ann"}, {.name = "ANN"}}}).find("already exists"),
            std::string::npos);
  EXPECT_NE(fault({.roles = {{.name = "r", .trust = "{"}}}).find("role r: trust"),
            std::string::npos);
  EXPECT_NE(fault({.roles = {{.name = "r", .max_session_seconds = 1}}}).find("max_session_seconds"),
            std::string::npos);
  EXPECT_NE(fault({.users = {{.name = "ann", .inline_ = {{"p", "{}"}}}}}).find("policy p"),
            std::string::npos);
  EXPECT_NE(fault({.keys = {{"A", "s", "u"}, {"A", "s", "v"}}}).find("defined twice"),
            std::string::npos);
}

TEST(IdentityChanges, KeepTheKeysOfARenamedUserOnly) {
  Identities identities = with_all();
  AccessKey orphan;
  orphan.id = "AKIA2";
  orphan.user = "bob";
  identities.put(orphan);
  ASSERT_TRUE(rename_user(identities, "ann", "bob", ""));
  EXPECT_EQ(identities.find_key("AKIA1")->user, "bob");
  EXPECT_FALSE(identities.find_key("AKIA2")) << "a key of an earlier bob opens nothing";
}

}  // namespace
}  // namespace trainyard::policy
