#include "s3/lifecycle.hpp"

#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "s3/operations.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;
using namespace std::chrono;

Instant at(const std::string& text) { return *parse_iso8601(text); }

s3::LifecycleRule rule(const std::string& prefix, int64_t days) {
  s3::LifecycleRule out;
  out.id = "rule " + prefix;
  out.status = "Enabled";
  out.filter.emplace().prefix = prefix;
  out.expiration.emplace().days = days;
  return out;
}

LifecycleRule read(const s3::LifecycleRule& from) {
  s3::BucketLifecycleConfiguration lifecycle;
  lifecycle.rules = {{from}};
  const auto rules = rules_in(lifecycle);
  EXPECT_EQ(rules.size(), 1u);
  return rules.empty() ? LifecycleRule() : rules.front();
}

TEST(LifecycleRules, CountDaysUpToTheNextMidnight) {
  EXPECT_EQ(due_after(at("2026-01-15T10:30:00Z"), 3), at("2026-01-19T00:00:00Z"));
  EXPECT_EQ(due_after(at("2026-01-15T00:00:00Z"), 3), at("2026-01-18T00:00:00Z"));
  EXPECT_GT(due_after(at("2026-01-15T00:00:00Z"), INT64_MAX), at("2026-01-15T00:00:00Z"));
  objects::ObjectInfo object{.key = "logs/a", .bytes = 5};
  object.modified = at("2026-01-15T10:30:00Z");
  const LifecycleRule after = read(rule("logs/", 3));
  EXPECT_FALSE(expires(after, object, at("2026-01-18T23:59:59Z")));
  EXPECT_TRUE(expires(after, object, at("2026-01-19T00:00:00Z")));
  EXPECT_FALSE(expires(read(rule("data/", 3)), object, at("2027-01-01T00:00:00Z")));
}

TEST(LifecycleRules, FilterByDateSizeAndTags) {
  s3::LifecycleRule from = rule("", 1);
  from.expiration->days.reset();
  from.expiration->date = at("2026-02-01T00:00:00Z");
  from.filter = s3::LifecycleRuleFilter();
  auto& both = from.filter->and_.emplace();
  both.tags = {{{.key = "keep", .value = "no"}}};
  both.object_size_greater_than = 4;
  both.object_size_less_than = 6;
  const LifecycleRule parsed = read(from);
  objects::ObjectInfo object{.key = "a", .bytes = 5};
  object.tags = {{"keep", "no"}, {"other", "tag"}};
  const Instant then = at("2026-02-01T00:00:00Z");
  EXPECT_TRUE(expires(parsed, object, then));
  EXPECT_FALSE(expires(parsed, object, then - 1s));
  for (const uint64_t bytes : {4, 6}) {
    object.bytes = bytes;
    EXPECT_FALSE(expires(parsed, object, then)) << bytes;
  }
  object.bytes = 5;
  object.tags["keep"] = "yes";
  EXPECT_FALSE(expires(parsed, object, then));
  object.tags.clear();
  EXPECT_FALSE(expires(parsed, object, then));
}

TEST(LifecycleRules, LeaveOutDisabledRulesAndRulesWithoutEffect) {
  s3::BucketLifecycleConfiguration lifecycle;
  EXPECT_TRUE(rules_in(lifecycle).empty());
  s3::LifecycleRule disabled = rule("", 1);
  disabled.status = "Disabled";
  s3::LifecycleRule moves = rule("", 1);
  moves.expiration.reset();
  moves.transitions = {{{.days = 1, .storage_class = "GLACIER"}}};
  lifecycle.rules = {{disabled, moves}};
  EXPECT_TRUE(rules_in(lifecycle).empty());
}

struct LifecycleWorld : OperationsWorld {
  LifecycleWorld() : OperationsWorld(add_operations) {
    EXPECT_TRUE(call<s3::CreateBucket>({.bucket = "data"}));
  }
  void put(const std::string& key) { EXPECT_TRUE(write_all(*objects, "data", key, "bytes")); }
  void set(std::vector<s3::LifecycleRule> rules) {
    s3::PutBucketLifecycleConfigurationRequest in{.bucket = "data"};
    in.lifecycle_configuration.emplace().rules = std::move(rules);
    const auto done = call<s3::PutBucketLifecycleConfiguration>(in);
    EXPECT_TRUE(done) << (done ? "" : done.failure(s3::kService).message);
  }
  LifecycleResult apply(const std::function<bool()>& stop = [] { return false; }) {
    return apply_lifecycle(*objects, BucketSettings(control), clock.now(), stop);
  }
  std::vector<std::string> keys() {
    std::vector<std::string> all;
    const auto page = objects->list("data", {});
    for (const auto& each : page->objects) all.push_back(each.key);
    return all;
  }
};

using Texts = std::vector<std::string>;

TEST(Lifecycle, RemovesExpiredObjects) {
  LifecycleWorld world;
  world.put("logs/old");
  world.put("data/old");
  world.clock.advance(72h);
  world.put("logs/new");
  world.set({rule("logs/", 2)});
  EXPECT_EQ(world.apply().objects_removed, 1u);
  EXPECT_EQ(world.keys(), (Texts{"data/old", "logs/new"}));
  EXPECT_EQ(world.apply().objects_removed, 0u);
  world.clock.advance(72h);
  EXPECT_EQ(world.apply().objects_removed, 1u);
  EXPECT_EQ(world.keys(), Texts{"data/old"});
}

TEST(Lifecycle, AppliesEachRuleToItsOwnPrefix) {
  LifecycleWorld world;
  for (const char* key : {"logs/a/1", "logs/b/1", "logs/c/1", "other", "\xc3\xbc", "\xc3\xbf"})
    world.put(key);
  world.clock.advance(72h);
  world.set({rule("logs/a/", 2), rule("logs/b/", 100), rule("logs/c", 2)});
  EXPECT_EQ(world.apply().objects_removed, 2u);
  EXPECT_EQ(world.keys(), (Texts{"logs/b/1", "other", "\xc3\xbc", "\xc3\xbf"}));
  world.set({rule("\xc3\xbc", 2), rule("\xc3\xbf", 2)});  // prefixes that differ within a character
  EXPECT_EQ(world.apply().objects_removed, 2u);
}

TEST(Lifecycle, RemovesByTag) {
  LifecycleWorld world;
  world.put("a");
  world.put("b");
  ASSERT_TRUE(world.objects->set_tags("data", "b", {{"scratch", "yes"}}));
  s3::LifecycleRule tagged = rule("", 1);
  tagged.filter = s3::LifecycleRuleFilter{};
  tagged.filter->tag = s3::Tag{.key = "scratch", .value = "yes"};
  world.set({tagged});
  world.clock.advance(72h);
  EXPECT_EQ(world.apply().objects_removed, 1u);
  EXPECT_EQ(world.keys(), Texts{"a"});
}

TEST(Lifecycle, AbortsOldUploads) {
  LifecycleWorld world;
  ASSERT_TRUE(world.objects->start_upload("data", "old"));
  world.clock.advance(72h);
  ASSERT_TRUE(world.objects->start_upload("data", "new"));
  s3::LifecycleRule aborting = rule("", 1);
  aborting.expiration.reset();
  aborting.abort_incomplete_multipart_upload.emplace().days_after_initiation = 2;
  world.set({aborting});
  EXPECT_EQ(world.apply().uploads_aborted, 1u);
  const auto left = *world.objects->list_uploads("data", "");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].key, "new");
}

TEST(Lifecycle, StopsOnRequestOrWhenItsRulesChange) {
  LifecycleWorld world;
  for (const char* key : {"a", "b", "c"}) world.put(key);
  world.set({rule("", 1)});
  world.clock.advance(72h);
  int requested = 0;  // before the bucket, and before each object
  EXPECT_EQ(world.apply([&] { return ++requested > 2; }).objects_removed, 1u);
  requested = 0;
  const auto deleting = [&] {
    if (++requested == 3) {
      EXPECT_TRUE(world.call<s3::DeleteBucketLifecycle>({.bucket = "data"}));
    }
    return false;
  };
  EXPECT_EQ(world.apply(deleting).objects_removed, 1u);
  EXPECT_EQ(world.keys(), Texts{"c"});
  EXPECT_EQ(world.apply().objects_removed, 0u);
}

TEST(Lifecycle, LosesItsRulesWithTheBucket) {
  LifecycleWorld world;
  world.set({rule("", 1)});
  ASSERT_TRUE(world.call<s3::DeleteBucket>({.bucket = "data"}));
  ASSERT_TRUE(world.call<s3::CreateBucket>({.bucket = "data"}));
  world.put("a");
  world.clock.advance(72h);
  EXPECT_EQ(world.apply().objects_removed, 0u);
  EXPECT_EQ(world.refusal<s3::GetBucketLifecycleConfiguration>({.bucket = "data"}),
            "NoSuchLifecycleConfiguration: The lifecycle configuration does not exist");
}

}  // namespace
}  // namespace trainyard::api::s3
