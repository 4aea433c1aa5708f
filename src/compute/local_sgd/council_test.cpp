// Circles of regions stepped by one thread: messages arrive in any order that links allow, regions die and come back,
// links break.
#include "local_sgd/council.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <memory>

#include "base/random.hpp"

namespace trainyard::local_sgd {
namespace {

constexpr size_t parameters = 3;

// The regions, what lies on the links between them, and who sees whom.
class World {
 public:
  World(uint32_t regions, uint64_t rounds, uint64_t seed) : rounds_(rounds), random_(seed) {
    places_.resize(regions);
    links_.resize(regions * regions);
    for (uint32_t region = 0; region < regions; ++region) start(region);
    for (uint32_t a = 0; a < regions; ++a) {
      for (uint32_t b = 0; b < a; ++b) link(a, b);
    }
  }

  void start(uint32_t region) {
    Place& place = places_[region];
    place.replica =
        std::make_unique<Replica>(std::vector<float>(parameters), "charter", OuterSettings{}, Coding::bf16);
    place.council = std::make_unique<Council>(*place.replica, region, size());
    place.finished = false;
    ++place.lives;
  }
  void kill(uint32_t region) {
    places_[region].council.reset();
    for (uint32_t other = 0; other < size(); ++other) unlink(region, other);
  }
  bool lives(uint32_t region) const { return places_[region].council != nullptr; }
  Council& council(uint32_t region) { return *places_[region].council; }
  const Replica& replica(uint32_t region) const { return *places_[region].replica; }
  uint32_t size() const { return uint32_t(places_.size()); }
  uint64_t messages() const { return messages_; }

  void link(uint32_t a, uint32_t b) {
    if (a == b || !lives(a) || !lives(b) || at(a, b).up) return;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      at(from, to).up = true;
      at(from, to).arriving.push_back({Arrival::linked, {}});
    }
  }
  // What was sent may still come, or some of it; then the end of the link is seen.
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

  // One thing happens somewhere: something arrives, or a region does what it does by itself. False: nothing can.
  bool step() {
    std::vector<std::function<void()>> possible;
    for (uint32_t to = 0; to < size(); ++to) {
      if (!lives(to)) continue;
      for (uint32_t from = 0; from < size(); ++from) {
        if (!at(from, to).arriving.empty()) possible.push_back([this, from, to] { arrive(from, to); });
      }
      if (may_work(to)) possible.push_back([this, to] { work(to); });
    }
    if (possible.empty()) return false;
    possible[random_.below(possible.size())]();
    return true;
  }

  std::string text() {
    std::string all;
    for (uint32_t r = 0; r < size(); ++r) {
      all += "\n  region " + std::to_string(r) +
             (lives(r) ? " round " + std::to_string(replica(r).round()) : " dead");
      if (!lives(r)) continue;
      all += " members";
      for (const uint32_t each : council(r).members()) all += " " + std::to_string(each);
      all += council(r).offering() ? " offers, waits for" : " waits for";
      for (const uint32_t each : council(r).waited_for()) all += " " + std::to_string(each);
    }
    return all;
  }
  void remind(uint32_t region) {
    council(region).found_with(1);
    council(region).remind();
    send(region);
  }
  bool is_finished(uint32_t region) const { return places_[region].finished; }

 private:
  struct Arrival {
    enum { linked, lost, said } what;
    Message message;
  };
  struct Link {
    bool up = false;
    std::deque<Arrival> arriving;
  };
  struct Place {
    std::unique_ptr<Replica> replica;
    std::unique_ptr<Council> council;
    bool finished = false;
    int lives = 0;
  };

  Link& at(uint32_t from, uint32_t to) { return links_[from * size() + to]; }

  bool may_work(uint32_t region) {
    const Place& place = places_[region];
    return place.council->is_member() && !place.council->offering() && !place.finished;
  }
  void work(uint32_t region) {
    Place& place = places_[region];
    if (place.replica->round() >= rounds_) {
      place.finished = true;
      place.council->finish();
    } else {
      std::vector<float> trained = place.replica->parameters();
      for (float& each : trained) each += float(random_.below(1000)) / 100.0f - float(region);
      auto offer = place.replica->offer(trained, 1 + double(region));
      place.council->offer(*std::move(offer));
    }
    send(region);
  }
  void arrive(uint32_t from, uint32_t to) {
    Arrival arrival = std::move(at(from, to).arriving.front());
    at(from, to).arriving.pop_front();
    if (arrival.what == Arrival::linked) {
      council(to).linked(from);
    } else if (arrival.what == Arrival::lost) {
      council(to).lost(from);
    } else {
      ++messages_;
      // As it comes from a real link.
      const auto message = decode_message(encode(arrival.message));
      ASSERT_TRUE(message) << message.error().message;
      council(to).heard(from, *message);
    }
    send(to);
  }
  void send(uint32_t from) {
    for (Outgoing& each : council(from).take_outgoing()) {
      if (at(from, each.to).up)
        at(from, each.to).arriving.push_back({Arrival::said, std::move(each.message)});
    }
  }

  const uint64_t rounds_;
  SeededRandom random_;
  std::vector<Place> places_;
  std::vector<Link> links_;
  uint64_t messages_ = 0;
};

constexpr int steps_max = 200'000;

// Goes on until nothing happens any more, with something of ours before each step.
void settle(
    World& world, const std::function<void(int step)>& before = [](int) {}) {
  int step = 0;
  while (step < steps_max) {
    before(step++);
    if (!world.step()) return;
  }
  FAIL() << "it never ends";
}

void expect_one_truth(World& world, uint64_t rounds, const std::string& where) {
  std::optional<uint64_t> digest;
  for (uint32_t region = 0; region < world.size(); ++region) {
    if (!world.lives(region)) continue;
    EXPECT_TRUE(world.is_finished(region)) << "region " << region << where;
    EXPECT_TRUE(world.council(region).may_leave()) << "region " << region << where;
    EXPECT_EQ(world.replica(region).round(), rounds) << "region " << region << where;
    if (!digest) digest = world.replica(region).digest();
    EXPECT_EQ(world.replica(region).digest(), *digest) << "region " << region << where;
  }
}

TEST(Council, regions_that_all_live_end_with_the_same_and_say_no_more_than_needed) {
  for (uint32_t regions = 1; regions <= 5; ++regions) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      constexpr uint64_t rounds = 4;
      World world(regions, rounds, seed);
      settle(world);
      expect_one_truth(world, rounds, " of " + std::to_string(regions) + ", seed " + std::to_string(seed));
      // Each pair's joins and dones; the founder's snapshots; and a round's offers and means.
      const uint64_t pairs = uint64_t(regions) * (regions - 1);
      EXPECT_EQ(world.messages(), 2 * pairs + (regions - 1) + rounds * 2 * (regions - 1));
    }
  }
}

TEST(Council, a_region_that_dies_anywhere_does_not_stop_the_others) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint32_t regions = 2 + uint32_t(seed % 4);
    World world(regions, 5, seed);
    SeededRandom random(seed + 1'000'000);
    const auto when = int(20 + random.below(60 * regions));
    const auto who = uint32_t(random.below(regions));
    settle(world, [&](int step) {
      // Not before there is a circle: until then everyone is waited for.
      if (step >= when && world.lives(who) && world.council(who).is_member()) world.kill(who);
    });
    for (uint32_t region = 0; region < regions; ++region) {
      if (!world.lives(region) || world.is_finished(region)) continue;
      // Somebody who had heard of the circle only from the dead one waits for a founder, with patience.
      EXPECT_FALSE(world.council(region).is_member()) << "seed " << seed << world.text();
      world.council(region).found_with(1);
    }
    settle(world);
    expect_one_truth(world, 5, ", seed " + std::to_string(seed));
  }
}

TEST(Council, a_region_that_comes_back_goes_on_with_the_others) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint32_t regions = 2 + uint32_t(seed % 3);
    World world(regions, 12, seed);
    SeededRandom random(seed + 2'000'000);
    const auto who = uint32_t(random.below(regions));
    const auto dies = int(40 + random.below(80));
    const auto returns = dies + int(random.below(80));
    int lives = 1;
    settle(world, [&](int step) {
      if (step >= dies && lives == 1 && world.lives(who) && world.council(who).is_member()) world.kill(who);
      if (step >= returns && lives == 1 && !world.lives(who)) {
        ++lives;
        world.start(who);
        for (uint32_t other = 0; other < regions; ++other) world.link(who, other);
      }
    });
    for (uint32_t region = 0; region < regions; ++region) {
      if (world.lives(region) && !world.council(region).is_member()) world.council(region).found_with(1);
    }
    settle(world);
    expect_one_truth(world, 12, ", seed " + std::to_string(seed));
  }
}

TEST(Council, links_that_break_and_heal_leave_one_circle) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const uint32_t regions = 2 + uint32_t(seed % 4);
    World world(regions, 30, seed);
    SeededRandom random(seed + 3'000'000);
    settle(world, [&](int step) {
      if (step > 2000) {  // from here on all links are whole
        for (uint32_t a = 0; a < regions; ++a) {
          for (uint32_t b = 0; b < a; ++b) world.link(a, b);
        }
      } else if (random.chance(15)) {
        const auto a = uint32_t(random.below(regions));
        const auto b = uint32_t(random.below(regions));
        world.is_up(a, b) ? world.unlink(a, b) : world.link(a, b);
        // Patience ends where nobody takes a region in.
        for (uint32_t region = 0; region < regions; ++region) {
          if (world.replica(region).round() > 0 && random.chance(10)) world.council(region).found_with(1);
        }
      }
    });
    for (int again = 0; again < 3; ++again) {
      for (uint32_t region = 0; region < regions; ++region) {
        for (uint32_t other = 0; other < region; ++other) world.link(region, other);
      }
      for (uint32_t region = 0; region < regions; ++region) world.remind(region);
      settle(world);
    }
    // Those who had finished apart stay with what they have: nobody is left behind, though.
    for (uint32_t region = 0; region < regions; ++region)
      EXPECT_EQ(world.replica(region).round(), 30u)
          << "region " << region << ", seed " << seed << world.text();
  }
}

TEST(Council, who_trains_another_model_is_refused_and_does_no_harm) {
  Replica ours({1, 2}, "", {}, Coding::f32);
  Council council(ours, 0, 2);
  council.linked(1);
  EXPECT_EQ(council.take_outgoing().size(), 1u);
  council.heard(1, Join{0, 5, 3});
  const auto said = council.take_outgoing();
  ASSERT_EQ(said.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Refuse>(said[0].message));
  EXPECT_NE(std::get<Refuse>(said[0].message).why.find("2 parameters"), std::string::npos);
  EXPECT_FALSE(council.is_member());
  council.heard(1, Refuse{"your model is another"});
  ASSERT_TRUE(council.refused());
  EXPECT_NE(council.refused()->find("region 1"), std::string::npos);
}

TEST(Council, an_offer_that_cannot_be_added_costs_its_sender_the_membership) {
  for (const Offer& bad : {Offer{1, 0, 1, Coding::f32, "short"}, Offer{1, 0, NAN, Coding::bf16, "1234"},
                           Offer{1, 0, -1, Coding::bf16, "1234"}}) {
    Replica ours({1, 2}, "", {}, Coding::f32);
    Council council(ours, 0, 2);
    council.linked(1);
    council.heard(1, Join{0, ours.digest(), 2});
    ASSERT_EQ(council.members(), (Members{0, 1}));
    council.heard(1, bad);
    EXPECT_EQ(council.members(), Members{0});
    council.offer(*ours.offer(std::vector<float>{0, 0}, 1));
    EXPECT_FALSE(council.offering());  // alone, it is the mean
    EXPECT_EQ(ours.round(), 1u);
  }
}

TEST(Council, a_region_that_has_come_to_something_else_is_put_right) {
  Replica ours({1, 2}, "", {}, Coding::f32);
  Council council(ours, 0, 2);
  council.linked(1);
  council.heard(1, Join{0, ours.digest(), 2});
  council.offer(*ours.offer(std::vector<float>{0, 0}, 1));
  (void)council.take_outgoing();
  council.heard(1, Offer{1, ours.digest() + 1, 1, Coding::f32, std::string(8, '\0')});
  const auto said = council.take_outgoing();
  ASSERT_EQ(said.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<Snapshot>(said[0].message));
  EXPECT_EQ(std::get<Snapshot>(said[0].message).parameters.size(), 8u);
  EXPECT_TRUE(council.offering());  // it is still waited for
}

}  // namespace
}  // namespace trainyard::local_sgd
