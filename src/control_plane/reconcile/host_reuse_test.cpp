#include "reconcile/host_reuse.hpp"

#include <gtest/gtest.h>

namespace trainyard::reconcile {
namespace {

domain::Job job(const char* queue) {
  domain::Job made;
  made.account = "123456789012";
  made.key = {"us-east-1", "id"};
  made.spec.image = "trainyard/host";
  made.spec.groups.push_back({"all", "", 1, domain::Share{1, 64 << 20, 0}});
  made.spec.queue.emplace();
  made.spec.contract = domain::Contract::plain;
  made.spec.queue->name = queue;
  made.spec.definition = "arn:d:1";
  return made;
}

TEST(HostReuse, RequiresTheTagOfTheQueue) {
  const std::set<domain::JobKey> queues = {{"us-east-1", "quick"}};
  EXPECT_TRUE(may_reuse(job("quick"), queues));
  EXPECT_FALSE(may_reuse(job("other"), queues));
  auto elsewhere = job("quick");
  elsewhere.key.region = "eu-west-1";
  EXPECT_FALSE(may_reuse(elsewhere, queues));
  auto gang = job("quick");
  gang.spec.groups[0].count = 2;
  EXPECT_FALSE(may_reuse(gang, queues));
  auto training = job("quick");
  training.spec.queue.reset();
  training.spec.contract = domain::Contract::training;
  EXPECT_FALSE(may_reuse(training, queues));
  EXPECT_TRUE(allows_reuse({{"team", "a"}, {"trainyard:reuse-hosts", "true"}}));
  EXPECT_FALSE(allows_reuse({{"trainyard:reuse-hosts", "false"}}));
}

TEST(HostReuse, RequiresEqualRequestsExceptForArgumentsAndVariables) {
  const auto previous = job("quick");
  struct Case {
    const char* what;
    void (*change)(domain::Job&);
    bool may;
  };
  const Case cases[] = {
      {"nothing", [](domain::Job&) {}, true},
      {"arguments", [](domain::Job& next) { next.spec.arguments = {"echo"}; }, true},
      {"variables", [](domain::Job& next) { next.spec.environment["A"] = "1"; }, true},
      {"name", [](domain::Job& next) { next.spec.display_name = "two"; }, true},
      {"image", [](domain::Job& next) { next.spec.image = "other"; }, false},
      {"role", [](domain::Job& next) { next.spec.role_arn = "arn:r"; }, false},
      {"isolation", [](domain::Job& next) { next.spec.network_isolation = true; }, false},
      {"memory", [](domain::Job& next) { next.spec.groups[0].share->memory_bytes *= 2; }, false},
      {"definition", [](domain::Job& next) { next.spec.definition = "arn:d:2"; }, false},
      {"queue", [](domain::Job& next) { next.spec.queue->name = "other"; }, false},
      {"account", [](domain::Job& next) { next.account = "1"; }, false},
  };
  for (const auto& each : cases) {
    auto next = previous;
    each.change(next);
    EXPECT_EQ(may_follow(previous, next), each.may) << each.what;
  }
}

}  // namespace
}  // namespace trainyard::reconcile
