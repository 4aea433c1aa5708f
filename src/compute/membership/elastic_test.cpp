// Members that come and go, over real connections.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "membership/member.hpp"
#include "membership/service.hpp"

namespace trainyard::membership {
namespace {

std::unique_ptr<Service> serve(Limits limits) {
  auto service = Service::start({{"127.0.0.1", 0}, "open sesame", limits});
  EXPECT_TRUE(service);
  return std::move(service).value();
}

Result<std::unique_ptr<Member>> member_of(const Service& service, const std::string& name,
                                          const std::string& secret = "open sesame") {
  return Member::connect(
      {.service = {"127.0.0.1", service.port()}, .secret = secret, .name = name, .host = "here"});
}

// A rank that counts steps all have made, as a training would: it goes back to its last commit when one fails.
struct Trainer {
  std::vector<int> sizes;         // of the generations that it was in
  std::vector<std::string> said;  // why they ended
  float total = 0;                // committed
};

// Steps until `steps` are committed; leaves without a word after `dies_after` of its own.
Trainer train(const Service& service, const std::string& name, int steps, int dies_after = -1) {
  Trainer trainer;
  auto member = member_of(service, name);
  if (!member) return trainer;
  std::string complaint;
  for (int own = 0;;) {
    const auto place = (*member)->next(complaint, 1min);
    if (!place) {
      trainer.said.push_back(place.error().message);
      return trainer;
    }
    complaint.clear();
    auto group = (*member)->join({.silence_max = 20s, .group = {.deterministic = true}});
    if (!group) {
      complaint = group.error().message;
      continue;
    }
    trainer.sizes.push_back((*group)->size());
    // Who is new is told where the others are.
    if (auto told = (*group)->broadcast(std::as_writable_bytes(std::span(&trainer.total, 1)), 0); !told) {
      complaint = told.error().message;
      continue;
    }
    for (;;) {
      if (int(trainer.total) >= steps) {
        (*member)->done();
        return trainer;
      }
      if (own++ == dies_after) return trainer;
      float step[] = {1, (*member)->changed().added ? 1.0f : 0.0f};
      if (auto reduced = (*group)->allreduce(std::span(step), collectives::Reduction::maximum); !reduced) {
        complaint = reduced.error().message;
        trainer.said.push_back(complaint);
        break;
      }
      trainer.total += step[0];
      if (step[1] > 0) break;  // all of them see it in the same step
      std::this_thread::sleep_for(1ms);
    }
  }
}

TEST(Elastic, SurvivorsGoOnFromTheLastCommitAndANewOneComes) {
  const auto service = serve({.ranks_min = 2, .ranks_max = 3});
  for (const char* name : {"a", "b", "c"}) service->expect(name);
  auto a = std::async([&] { return train(*service, "a", 400); });
  auto b = std::async([&] { return train(*service, "b", 400); });
  auto c = std::async([&] { return train(*service, "c", 400, 20); });
  c.get();
  auto d = std::async([&] { return train(*service, "d", 400); });
  const Trainer first = a.get(), second = b.get(), last = d.get();
  EXPECT_EQ(first.total, 400);
  EXPECT_EQ(second.total, 400);
  EXPECT_EQ(last.total, 400) << "it was told what it had missed";
  EXPECT_EQ(first.sizes.front(), 3);
  EXPECT_EQ(first.sizes.back(), 3) << "d is in";
  ASSERT_FALSE(first.said.empty());
  EXPECT_NE(first.said.front().find("rank"), std::string::npos) << first.said.front();
  bool named = false;
  while (const auto news = service->next(0ms)) named |= news->kind == News::Kind::lost && news->name == "c";
  EXPECT_TRUE(named);
}

TEST(Elastic, FewerThanTheMinimumWait) {
  const auto service = serve({.ranks_min = 2, .ranks_max = 2});
  auto a = std::async([&] { return train(*service, "a", 100); });
  auto b = std::async([&] { return train(*service, "b", 100, 10); });
  b.get();
  // It stands in line, alone, and is still there.
  std::string missing;
  for (int look = 0; look < 2000 && missing.find("1 of at least 2") == std::string::npos; ++look) {
    std::this_thread::sleep_for(5ms);
    missing = service->missing();
  }
  EXPECT_NE(missing.find("1 of at least 2"), std::string::npos) << missing;
  auto c = std::async([&] { return train(*service, "c", 100); });
  EXPECT_EQ(a.get().total, 100);
  EXPECT_EQ(c.get().total, 100);
}

TEST(Elastic, OneThatVanishesBetweenItsSeatAndTheJoinHoldsUpNobody) {
  const auto service = serve({.ranks_min = 1, .ranks_max = 3});
  for (const char* name : {"a", "b"}) service->expect(name);
  auto silent = member_of(*service, "b");
  ASSERT_TRUE(silent);
  auto a = std::async([&] { return train(*service, "a", 5); });
  ASSERT_TRUE((*silent)->next({}, 1min));
  silent->reset();
  const Trainer trainer = a.get();
  EXPECT_EQ(trainer.total, 5);
  EXPECT_EQ(trainer.sizes, std::vector<int>{1});
}

TEST(Elastic, OneThatGoesBackBeforeTheJoinHoldsUpNobody) {
  const auto service = serve({.ranks_min = 2, .ranks_max = 2});
  auto a = member_of(*service, "a"), b = member_of(*service, "b");
  ASSERT_TRUE(a && b);
  auto first = std::async([&] { return (*a)->next({}, 1min); });
  ASSERT_TRUE((*b)->next({}, 1min));
  ASSERT_TRUE(first.get());
  auto back = std::async([&] { return (*b)->next("it changed its mind", 1min); });
  const auto joined = (*a)->join({});
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().message.find("it changed its mind"), std::string::npos) << joined.error().message;
  ASSERT_TRUE((*a)->next(joined.error().message, 1min));
  ASSERT_TRUE(back.get());
  auto other = std::async([&] { return (*b)->join({}); });
  EXPECT_TRUE((*a)->join({})) << "what was said of the last generation does not count in this one";
  EXPECT_TRUE(other.get());
}

TEST(Elastic, AStrangerIsRefused) {
  const auto service = serve({});
  auto stranger = member_of(*service, "x", "wrong");
  ASSERT_TRUE(stranger);
  const auto place = (*stranger)->next({}, 1min);
  ASSERT_FALSE(place);
  EXPECT_NE(place.error().message.find("secret"), std::string::npos) << place.error().message;
  EXPECT_FALSE(service->next(50ms)) << "nobody came";
}

TEST(Elastic, AMemberWhoseServiceIsGoneSaysSo) {
  auto service = serve({.ranks_min = 2, .ranks_max = 2});
  auto member = member_of(*service, "a");
  ASSERT_TRUE(member);
  auto place = std::async([&] { return (*member)->next({}, 1min); });
  ASSERT_TRUE(service->next(10s)) << "it came";
  service.reset();
  const auto answer = place.get();
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("service"), std::string::npos) << answer.error().message;
}

TEST(Elastic, WhoeverIsLeftBehindIsTold) {
  const auto service = serve({.ranks_min = 1, .ranks_max = 2, .settle_max = 200ms});
  for (const char* name : {"a", "b"}) service->expect(name);
  auto a = member_of(*service, "a"), b = member_of(*service, "b");
  ASSERT_TRUE(a && b);
  auto first = std::async([&] { return (*a)->next({}, 1min); });
  ASSERT_TRUE((*b)->next({}, 1min));
  ASSERT_TRUE(first.get());
  ASSERT_TRUE((*a)->next("it failed", 1min)) << "alone";
  const auto told = (*b)->next({}, 1min);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().kind, Kind::denied);
}

}  // namespace
}  // namespace trainyard::membership
