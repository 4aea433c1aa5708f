#include "batch/policy.hpp"

#include <gtest/gtest.h>

#include "batch/catalog.hpp"
#include "domain/limits.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

const std::string kRegion = "eu-west-1";

SchedulingPolicy policy(const std::string& name,
                        SchedulingPolicy::Kind kind = SchedulingPolicy::Kind::fair_share) {
  SchedulingPolicy made;
  made.key = {kRegion, name};
  made.kind = kind;
  return made;
}
ServiceEnvironment service_environment(const std::string& name, bool enabled = true) {
  ServiceEnvironment made;
  made.key = {kRegion, name};
  made.enabled = enabled;
  made.limits = {{std::string(kInstancesUnit), 4}};
  return made;
}
JobQueue queue(const std::string& name, const std::string& policy_name = "", bool enabled = true) {
  JobQueue made;
  made.key = {kRegion, name};
  made.service = true;
  made.environments = {"there"};
  made.policy = policy_name;
  made.enabled = enabled;
  return made;
}
QuotaShare quota_share(const std::string& in, const std::string& name, bool enabled = true) {
  QuotaShare made;
  made.key = {kRegion, quota_share_name(in, name)};
  made.enabled = enabled;
  made.limits = {{"ml.m5.large", 2}};
  return made;
}
ConsumableResource licences(int64_t total) {
  ConsumableResource made;
  made.key = {kRegion, "licences"};
  made.total = total;
  return made;
}

std::string why(const Catalog& catalog, ResourceChange how, Resource resource) {
  const auto done = changed(catalog, nullptr, how, std::move(resource));
  return done ? "done" : done.error().message;
}

TEST(SchedulingPolicy, HasTheWeightOfTheMatchingPattern) {
  SchedulingPolicy made = policy("p");
  made.weights = {{"UserA*", 0.5}, {"UserB", 2}};
  struct Row {
    std::string share;
    double weight;
  };
  for (const Row& row :
       {Row{"UserA", 0.5}, Row{"UserA1", 0.5}, Row{"UserB", 2}, Row{"UserB1", 1}, Row{"usera", 1}})
    EXPECT_EQ(made.weight_of(row.share), row.weight) << row.share;
  EXPECT_EQ(made.decay(), 600) << "0 stands for the default";
  made.decay_seconds = 60;
  EXPECT_EQ(made.decay(), 60);
}

TEST(SchedulingPolicy, RejectsPatternsThatMatchTheSameShare) {
  const auto check = [](std::vector<std::string> patterns) {
    std::vector<ShareWeight> weights;
    for (std::string& pattern : patterns) weights.push_back({std::move(pattern), 1});
    const auto checked = check_weights(weights);
    return checked ? "" : checked.error().message;
  };
  EXPECT_EQ(check({"UserA", "UserB*", "C"}), "");
  EXPECT_EQ(check({"UserA1", "UserA*"}), "the share identifiers UserA* and UserA1 overlap");
  EXPECT_EQ(check({"User*", "UserA*"}), "the share identifiers User* and UserA* overlap");
  EXPECT_EQ(check({"a", "a"}), "the share identifiers a and a overlap");
}

TEST(Catalog, ReplacesAQueuesPolicyOnlyByTheSameKind) {
  using Kind = SchedulingPolicy::Kind;
  Catalog catalog;
  put(catalog, ResourceChange::create, service_environment("there"));
  put(catalog, ResourceChange::create, policy("fair"));
  put(catalog, ResourceChange::create, policy("fair2"));
  put(catalog, ResourceChange::create, policy("quotas", Kind::quota_shares));
  EXPECT_EQ(why(catalog, ResourceChange::create, queue("q", "none")),
            "the scheduling policy none does not exist");
  EXPECT_EQ(why(catalog, ResourceChange::create, queue("q", "fair")), "done");
  put(catalog, ResourceChange::create, queue("q", "fair"));
  put(catalog, ResourceChange::create, queue("plain"));
  EXPECT_EQ(why(catalog, ResourceChange::update, queue("q", "fair2")), "done");
  EXPECT_NE(why(catalog, ResourceChange::update, queue("q", "quotas")).find("cannot replace"),
            std::string::npos);
  EXPECT_NE(why(catalog, ResourceChange::update, queue("q")).find("not added or removed"),
            std::string::npos);
  EXPECT_NE(
      why(catalog, ResourceChange::update, queue("plain", "fair")).find("not added or removed"),
      std::string::npos);
  EXPECT_NE(why(catalog, ResourceChange::update, policy("fair", Kind::quota_shares))
                .find("cannot become"),
            std::string::npos);
  EXPECT_EQ(why(catalog, ResourceChange::remove, policy("fair")),
            "Cannot delete, found existing JobQueue relationship: q");
  EXPECT_EQ(why(catalog, ResourceChange::remove, policy("fair2")), "done");
  EXPECT_EQ(why(catalog, ResourceChange::create, policy("fair")), "Object already exists");
  EXPECT_EQ(why(catalog, ResourceChange::remove, policy("none")),
            "the scheduling policy none does not exist");
}

TEST(Catalog, RequiresServiceEnvironmentsForServiceQueues) {
  Catalog catalog;
  EXPECT_EQ(why(catalog, ResourceChange::create, queue("q")),
            "the service environment there does not exist");
  put(catalog, ResourceChange::create, service_environment("there"));
  put(catalog, ResourceChange::create, queue("q"));
  EXPECT_EQ(why(catalog, ResourceChange::remove, service_environment("there")),
            "Cannot delete, resource must be disabled: there");
  put(catalog, ResourceChange::update, service_environment("there", false));
  EXPECT_EQ(why(catalog, ResourceChange::remove, service_environment("there")),
            "Cannot delete, found existing JobQueue relationship: q");
  put(catalog, ResourceChange::remove, queue("q"));
  EXPECT_EQ(why(catalog, ResourceChange::remove, service_environment("there")), "done");
}

TEST(Catalog, ChecksQuotaSharesAgainstTheirQueue) {
  Catalog catalog;
  put(catalog, ResourceChange::create, service_environment("there"));
  put(catalog, ResourceChange::create, policy("quotas", SchedulingPolicy::Kind::quota_shares));
  put(catalog, ResourceChange::create, queue("plain"));
  put(catalog, ResourceChange::create, queue("q", "quotas", false));
  EXPECT_EQ(why(catalog, ResourceChange::create, quota_share("none", "a")),
            "the job queue none does not exist");
  EXPECT_EQ(why(catalog, ResourceChange::create, quota_share("plain", "a")),
            "the job queue plain has no scheduling policy with a quotaSharePolicy");
  for (size_t i = 0; i < kQuotaSharesOfQueueMax; ++i)
    put(catalog, ResourceChange::create, quota_share("q", "share" + std::to_string(i)));
  EXPECT_EQ(why(catalog, ResourceChange::create, quota_share("q", "a")),
            "a job queue has at most 20 quota shares");
  EXPECT_EQ(why(catalog, ResourceChange::create, quota_share("q", "share1")),
            "Object already exists");
  EXPECT_EQ(why(catalog, ResourceChange::update, quota_share("q", "a")),
            "the quota share q/a does not exist");
  EXPECT_EQ(why(catalog, ResourceChange::remove, quota_share("q", "share1")),
            "Cannot delete, resource must be disabled: q/share1");
  put(catalog, ResourceChange::update, quota_share("q", "share1", false));
  EXPECT_EQ(why(catalog, ResourceChange::remove, quota_share("q", "share1")), "done");
  EXPECT_EQ(why(catalog, ResourceChange::remove, queue("q")),
            "Cannot delete, found existing QuotaShare relationship: share0");
  EXPECT_EQ(quota_share("q", "a").queue(), "q");
  EXPECT_EQ(quota_share("q", "a").name(), "a");
}

TEST(ConsumableResource, AppliesAnUpdateOncePerToken) {
  struct Row {
    std::optional<int64_t> set;
    int64_t add;
    std::string token;
    int64_t total;
  };
  ConsumableResource resource = licences(5);
  for (const Row& row : {Row{7, 0, "", 7}, Row{{}, 3, "a", 10}, Row{{}, 3, "a", 10},
                         Row{{}, -10, "b", 0}, Row{2, 0, "c", 2}, Row{{}, 1, "b", 2}}) {
    ConsumableResource change = licences(99);
    change.set = row.set;
    change.add = row.add;
    change.token = row.token;
    const auto done = updated(resource, change);
    ASSERT_TRUE(done);
    resource = *done;
    EXPECT_EQ(resource.total, row.total);
  }
  ConsumableResource change = licences(0);
  change.add = -3;
  EXPECT_FALSE(updated(resource, change)) << "the total is 2";
  change.add = INT64_MAX;
  EXPECT_FALSE(updated(resource, change));
  change.add = 0;
  for (size_t i = 0; i < 2 * kUpdateTokensKept; ++i) {
    change.token = std::to_string(i);
    resource = *updated(resource, change);
  }
  EXPECT_EQ(resource.tokens.size(), kUpdateTokensKept);
  EXPECT_EQ(resource.tokens.back(), change.token);
}

TEST(Catalog, WritesAndReadsPoliciesSharesAndConsumableResourcesUnchanged) {
  SchedulingPolicy fair = policy("fair");
  fair.decay_seconds = 3600;
  fair.reservation_percent = 50;
  fair.weights = {{"a*", 0.125}, {"b", 2}};
  fair.request = {{"fairsharePolicy", Json::object()}};
  QuotaShare share = quota_share("q", "a", false);
  share.strategy = QuotaShare::Strategy::lend_and_borrow;
  share.borrow_percent = 200;
  share.preempts_within = true;
  ConsumableResource resource = licences(3);
  resource.replenishable = false;
  resource.created = from_milliseconds(17);
  resource.tokens = {"x"};
  resource.add = -2;
  resource.token = "y";
  JobQueue limited = queue("q", "fair");
  limited.wait_limits = {{600, true, "too long"}, {900, false, "far too long"}};
  for (const Resource& resource :
       {Resource(fair), Resource(policy("quotas", SchedulingPolicy::Kind::quota_shares)),
        Resource(share), Resource(service_environment("there", false)), Resource(resource),
        Resource(limited)}) {
    const auto read = resource_from_json(kind_of(resource), to_json(resource));
    ASSERT_TRUE(read) << kind_of(resource);
    EXPECT_EQ(to_json(*read), to_json(resource));
    Catalog catalog;
    put(catalog, ResourceChange::update, resource);
    EXPECT_EQ(catalog.policies.size() + catalog.quota_shares.size() +
                  catalog.service_environments.size() + catalog.resources.size() +
                  catalog.queues.size(),
              1u);
  }
  EXPECT_FALSE(policy_from_json({{"kind", "unfair"}}));
  EXPECT_FALSE(quota_share_from_json({{"strategy", "STEAL"}}));
}

TEST(ConsumableResource, KeepsItsTotalWithinTheLimit) {
  Catalog catalog;
  ConsumableResource resource;
  resource.key = {"eu-west-1", "licences"};
  for (const int64_t total : {int64_t{-1}, kCountedMax + 1, INT64_MAX}) {
    resource.total = total;
    EXPECT_FALSE(changed(catalog, nullptr, ResourceChange::create, resource)) << total;
  }
  resource.total = kCountedMax;
  ASSERT_TRUE(changed(catalog, nullptr, ResourceChange::create, resource));
  put(catalog, ResourceChange::create, resource);
  for (const int64_t add : {int64_t{1}, INT64_MAX, -kCountedMax - 1, INT64_MIN}) {
    ConsumableResource change = resource;
    change.add = add;
    EXPECT_FALSE(changed(catalog, nullptr, ResourceChange::update, change)) << add;
  }
}

}  // namespace
}  // namespace trainyard::batch
