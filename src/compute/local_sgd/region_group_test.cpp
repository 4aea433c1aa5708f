// Runs groups of regions in steps on one thread: messages arrive in every order that the links
// allow, regions are killed and restarted, and links break.
#include "local_sgd/region_group.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <memory>

#include "base/random.hpp"

namespace trainyard::local_sgd {
namespace {

constexpr size_t kParameters = 3;

// Simulates regions and the links between them.
class SimulatedRegions {
 public:
  SimulatedRegions(uint32_t regions, uint64_t rounds, uint64_t seed)
      : rounds_(rounds), random_(seed) {
    regions_.resize(regions);
    links_.resize(regions * regions);
    for (uint32_t region = 0; region < regions; ++region) start(region);
    for (uint32_t a = 0; a < regions; ++a) {
      for (uint32_t b = 0; b < a; ++b) link(a, b);
    }
  }

  void start(uint32_t region) {
    SimulatedRegion& state = regions_[region];
    state.replica = std::make_unique<Replica>(std::vector<float>(kParameters), "charter",
                                              OuterSettings{}, Coding::bf16);
    state.group = std::make_unique<RegionGroup>(*state.replica, region, size());
    state.finished = false;
    ++state.lives;
  }
  void kill(uint32_t region) {
    regions_[region].group.reset();
    for (uint32_t other = 0; other < size(); ++other) unlink(region, other);
  }
  bool lives(uint32_t region) const { return regions_[region].group != nullptr; }
  RegionGroup& group(uint32_t region) { return *regions_[region].group; }
  const Replica& replica(uint32_t region) const { return *regions_[region].replica; }
  uint32_t size() const { return uint32_t(regions_.size()); }
  uint64_t messages() const { return messages_; }

  void link(uint32_t a, uint32_t b) {
    if (a == b || !lives(a) || !lives(b) || at(a, b).up) return;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      at(from, to).up = true;
      at(from, to).arriving.push_back({Arrival::linked, {}});
    }
  }
  // Breaks a link: some of the messages that were sent may still arrive before both ends notice.
  void unlink(uint32_t a, uint32_t b) {
    if (a == b || !at(a, b).up) return;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      Link& link = at(from, to);
      link.up = false;
      while (link.arriving.size() > 1 && random_.chance(2)) link.arriving.pop_back();
      link.arriving.push_back({Arrival::lost, {}});
      if (!lives(to)) link.arriving.clear();
    }
  }
  bool is_up(uint32_t a, uint32_t b) { return at(a, b).up; }

  // Performs one random event: a message arrives, or a region trains. Returns false when none is
  // actions.
  bool step() {
    std::vector<std::function<void()>> actions;
    for (uint32_t to = 0; to < size(); ++to) {
      if (!lives(to)) continue;
      for (uint32_t from = 0; from < size(); ++from) {
        if (!at(from, to).arriving.empty())
          actions.push_back([this, from, to] { arrive(from, to); });
      }
      if (may_work(to)) actions.push_back([this, to] { work(to); });
    }
    if (actions.empty()) return false;
    actions[random_.below(actions.size())]();
    return true;
  }

  std::string text() {
    std::string all;
    for (uint32_t r = 0; r < size(); ++r) {
      all += "\n  region " + std::to_string(r) +
             (lives(r) ? " round " + std::to_string(replica(r).round()) : " dead");
      if (!lives(r)) continue;
      all += " members";
      for (const uint32_t each : group(r).members()) all += " " + std::to_string(each);
      all += group(r).offering() ? " offering, waiting for" : " waiting for";
      for (const uint32_t each : group(r).waited_for()) all += " " + std::to_string(each);
    }
    return all;
  }
  void resend_state(uint32_t region) {
    group(region).form_with(1);
    group(region).resend_state();
    send(region);
  }
  bool is_finished(uint32_t region) const { return regions_[region].finished; }

 private:
  struct Arrival {
    enum { linked, lost, sent } what;
    Message message;
  };
  struct Link {
    bool up = false;
    std::deque<Arrival> arriving;
  };
  struct SimulatedRegion {
    std::unique_ptr<Replica> replica;
    std::unique_ptr<RegionGroup> group;
    bool finished = false;
    int lives = 0;
  };

  Link& at(uint32_t from, uint32_t to) { return links_[from * size() + to]; }

  bool may_work(uint32_t region) {
    const SimulatedRegion& state = regions_[region];
    return state.group->is_member() && !state.group->offering() && !state.finished;
  }
  void work(uint32_t region) {
    SimulatedRegion& state = regions_[region];
    if (state.replica->round() >= rounds_) {
      state.finished = true;
      state.group->finish();
    } else {
      std::vector<float> trained = state.replica->parameters();
      for (float& each : trained) each += float(random_.below(1000)) / 100.0f - float(region);
      auto offer = state.replica->offer(trained, 1 + double(region));
      state.group->offer(*std::move(offer));
    }
    send(region);
  }
  void arrive(uint32_t from, uint32_t to) {
    Arrival arrival = std::move(at(from, to).arriving.front());
    at(from, to).arriving.pop_front();
    if (arrival.what == Arrival::linked) {
      group(to).linked(from);
    } else if (arrival.what == Arrival::lost) {
      group(to).lost(from);
    } else {
      ++messages_;
      // Encodes and decodes the message, as a real link does.
      const auto message = decode_message(encode(arrival.message));
      ASSERT_TRUE(message) << message.error().message;
      group(to).received(from, *message);
    }
    send(to);
  }
  void send(uint32_t from) {
    for (Outgoing& each : group(from).take_outgoing()) {
      if (at(from, each.to).up)
        at(from, each.to).arriving.push_back({Arrival::sent, std::move(each.message)});
    }
  }

  const uint64_t rounds_;
  SeededRandom random_;
  std::vector<SimulatedRegion> regions_;
  std::vector<Link> links_;
  uint64_t messages_ = 0;
};

constexpr int kStepsMax = 200'000;

// Steps until no event is possible; calls `before` before each step.
void settle(
    SimulatedRegions& world, const std::function<void(int step)>& before = [](int) {}) {
  int step = 0;
  while (step < kStepsMax) {
    before(step++);
    if (!world.step()) return;
  }
  FAIL() << "no end after " << kStepsMax << " steps";
}

void expect_equal_replicas(SimulatedRegions& world, uint64_t rounds, const std::string& where) {
  std::optional<uint64_t> digest;
  for (uint32_t region = 0; region < world.size(); ++region) {
    if (!world.lives(region)) continue;
    EXPECT_TRUE(world.is_finished(region)) << "region " << region << where;
    EXPECT_TRUE(world.group(region).may_leave()) << "region " << region << where;
    EXPECT_EQ(world.replica(region).round(), rounds) << "region " << region << where;
    if (!digest) digest = world.replica(region).digest();
    EXPECT_EQ(world.replica(region).digest(), *digest) << "region " << region << where;
  }
}

TEST(RegionGroup, WithoutFailuresEndsEqualAndSendsNoUnnecessaryMessages) {
  for (uint32_t regions = 1; regions <= 5; ++regions) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      constexpr uint64_t rounds = 4;
      SimulatedRegions world(regions, rounds, seed);
      settle(world);
      expect_equal_replicas(world, rounds,
                            " of " + std::to_string(regions) + ", seed " + std::to_string(seed));
      // Join and Done between each pair, the snapshots of the founder, and the offers and means of
      // each round.
      const uint64_t pairs = uint64_t(regions) * (regions - 1);
      EXPECT_EQ(world.messages(), 2 * pairs + (regions - 1) + rounds * 2 * (regions - 1));
    }
  }
}

TEST(RegionGroup, ContinuesWhenARegionIsKilledAtAnyTime) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint32_t regions = 2 + uint32_t(seed % 4);
    SimulatedRegions world(regions, 5, seed);
    SeededRandom random(seed + 1'000'000);
    const auto when = int(20 + random.below(60 * regions));
    const auto killed = uint32_t(random.below(regions));
    settle(world, [&](int step) {
      // Not before the group is founded: until then all regions are needed.
      if (step >= when && world.lives(killed) && world.group(killed).is_member())
        world.kill(killed);
    });
    for (uint32_t region = 0; region < regions; ++region) {
      if (!world.lives(region) || world.is_finished(region)) continue;
      // A region that only the killed one knew waits for a founder until its timeout.
      EXPECT_FALSE(world.group(region).is_member()) << "seed " << seed << world.text();
      world.group(region).form_with(1);
    }
    settle(world);
    expect_equal_replicas(world, 5, ", seed " + std::to_string(seed));
  }
}

TEST(RegionGroup, LetsARestartedRegionContinueWithTheOthers) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint32_t regions = 2 + uint32_t(seed % 3);
    SimulatedRegions world(regions, 12, seed);
    SeededRandom random(seed + 2'000'000);
    const auto killed = uint32_t(random.below(regions));
    const auto killed_at = int(40 + random.below(80));
    const auto returns_at = killed_at + int(random.below(80));
    int lives = 1;
    settle(world, [&](int step) {
      if (step >= killed_at && lives == 1 && world.lives(killed) && world.group(killed).is_member())
        world.kill(killed);
      if (step >= returns_at && lives == 1 && !world.lives(killed)) {
        ++lives;
        world.start(killed);
        for (uint32_t other = 0; other < regions; ++other) world.link(killed, other);
      }
    });
    for (uint32_t region = 0; region < regions; ++region) {
      if (world.lives(region) && !world.group(region).is_member()) world.group(region).form_with(1);
    }
    settle(world);
    expect_equal_replicas(world, 12, ", seed " + std::to_string(seed));
  }
}

TEST(RegionGroup, IsOneGroupAfterBrokenLinksAreRestored) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint32_t regions = 2 + uint32_t(seed % 4);
    SimulatedRegions world(regions, 30, seed);
    SeededRandom random(seed + 3'000'000);
    settle(world, [&](int step) {
      if (step > 2000) {  // from here on all links are up
        for (uint32_t a = 0; a < regions; ++a) {
          for (uint32_t b = 0; b < a; ++b) world.link(a, b);
        }
      } else if (random.chance(15)) {
        const auto a = uint32_t(random.below(regions));
        const auto b = uint32_t(random.below(regions));
        world.is_up(a, b) ? world.unlink(a, b) : world.link(a, b);
        // The join timeout of a region ends at a random time.
        for (uint32_t region = 0; region < regions; ++region) {
          if (world.replica(region).round() > 0 && random.chance(10))
            world.group(region).form_with(1);
        }
      }
    });
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (uint32_t region = 0; region < regions; ++region) {
        for (uint32_t other = 0; other < region; ++other) world.link(region, other);
      }
      for (uint32_t region = 0; region < regions; ++region) world.resend_state(region);
      settle(world);
    }
    // Regions that finished separately keep their results, but each has seen all rounds.
    for (uint32_t region = 0; region < regions; ++region)
      EXPECT_EQ(world.replica(region).round(), 30u)
          << "region " << region << ", seed " << seed << world.text();
  }
}

// Members that are linked after the last snapshot or mean of their leader know each other only from
// their hellos, in which both name that leader.
TEST(RegionGroup, MembersLinkedLateStayOneGroupWhenTheirLeaderIsLost) {
  constexpr uint64_t kRounds = 50;  // enough that none ends alone before it has heard of the others
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint32_t regions = 3 + uint32_t(seed % 3);
    SimulatedRegions world(regions, kRounds, seed);
    for (uint32_t a = 1; a < regions; ++a) {
      for (uint32_t b = 1; b < a; ++b) world.unlink(a, b);
    }
    const auto are_members = [&] {
      for (uint32_t region = 0; region < regions; ++region) {
        if (!world.group(region).is_member()) return false;
      }
      return true;
    };
    while (!are_members()) ASSERT_TRUE(world.step()) << "seed " << seed << world.text();
    for (uint32_t a = 1; a < regions; ++a) {
      for (uint32_t b = 1; b < a; ++b) world.link(a, b);
    }
    SeededRandom random(seed + 4'000'000);
    const auto when = int(random.below(60));
    settle(world, [&](int step) {
      if (step == when) world.kill(0);
    });
    for (uint32_t region = 1; region < regions; ++region) {
      if (!world.group(region).is_member()) world.group(region).form_with(1);
    }
    settle(world);
    expect_equal_replicas(world, kRounds, ", seed " + std::to_string(seed) + world.text());
  }
}

TEST(RegionGroup, RejectsARegionWithAnotherModel) {
  Replica ours({1, 2}, "", {}, Coding::f32);
  RegionGroup group(ours, 0, 2);
  group.linked(1);
  EXPECT_EQ(group.take_outgoing().size(), 1u);
  group.received(1, Join{0, 5, 3});
  const auto sent = group.take_outgoing();
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Refuse>(sent[0].message));
  EXPECT_NE(std::get<Refuse>(sent[0].message).why.find("2 parameters"), std::string::npos);
  EXPECT_FALSE(group.is_member());
  group.received(1, Refuse{"different model"});
  ASSERT_TRUE(group.refused());
  EXPECT_NE(group.refused()->find("region 1"), std::string::npos);
}

TEST(RegionGroup, RemovesTheSenderOfAnInvalidOffer) {
  for (const Offer& bad :
       {Offer{1, 0, 1, Coding::f32, "short"}, Offer{1, 0, NAN, Coding::bf16, "1234"},
        Offer{1, 0, -1, Coding::bf16, "1234"}}) {
    Replica ours({1, 2}, "", {}, Coding::f32);
    RegionGroup group(ours, 0, 2);
    group.linked(1);
    group.received(1, Join{0, ours.digest(), 2});
    ASSERT_EQ(group.members(), (Members{0, 1}));
    group.received(1, bad);
    EXPECT_EQ(group.members(), Members{0});
    group.offer(*ours.offer(std::vector<float>{0, 0}, 1));
    EXPECT_FALSE(group.offering());  // the only offer is the mean
    EXPECT_EQ(ours.round(), 1u);
  }
}

// Region 0 leads a group with region 1.
struct LeaderOfTwo {
  LeaderOfTwo() {
    group.linked(1);
    group.received(1, Join{0, ours.digest(), 2});
  }
  void offer() { group.offer(*ours.offer(std::vector<float>{0, 0}, 1)); }

  Replica ours = Replica({1, 2}, "", {}, Coding::f32);
  RegionGroup group = RegionGroup(ours, 0, 2);
};

TEST(RegionGroup, ReportsTheMembersOfARoundAlsoWhenOneLeavesAfterIt) {
  LeaderOfTwo leader;
  auto& [ours, group] = leader;
  leader.offer();
  group.received(1, Offer{1, ours.digest(), 1, Coding::f32, std::string(8, '\0')});
  ASSERT_FALSE(group.offering());
  group.lost(1);
  EXPECT_EQ(group.size(), 1u);
  EXPECT_EQ(group.size_of_round(), 2u);
  leader.offer();
  EXPECT_EQ(group.size_of_round(), 1u) << "of the round without it";
}

TEST(RegionGroup, SendsASnapshotToARegionWithDifferentParameters) {
  LeaderOfTwo leader;
  auto& [ours, group] = leader;
  leader.offer();
  (void)group.take_outgoing();
  group.received(1, Offer{1, ours.digest() + 1, 1, Coding::f32, std::string(8, '\0')});
  const auto sent = group.take_outgoing();
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Snapshot>(sent[0].message));
  EXPECT_EQ(std::get<Snapshot>(sent[0].message).parameters.size(), 8u);
  EXPECT_TRUE(group.offering());  // the round still waits for the peer
}

}  // namespace
}  // namespace trainyard::local_sgd
