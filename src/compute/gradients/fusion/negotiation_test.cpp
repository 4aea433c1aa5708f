// Tests the negotiation of all ranks, which run in steps on one thread: transitions, and random
// orders of submission.
#include "gradients/fusion/negotiation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/random.hpp"

namespace trainyard::gradients {
namespace {

// Executes all ranks, one cycle at a time.
class Ranks {
 public:
  explicit Ranks(int ranks, Negotiation::Limits limits = {}) {
    for (int rank = 0; rank < ranks; ++rank) ranks_.emplace_back(rank, ranks, limits);
  }
  int size() const { return int(ranks_.size()); }
  Negotiation& operator[](int rank) { return ranks_[size_t(rank)]; }

  // Returns the plan of a cycle, which must be equal on all ranks.
  Plan cycle(Duration now = 0ms) {
    std::vector<std::vector<uint64_t>> bits;
    for (auto& rank : ranks_) bits.push_back(rank.bits(now));
    auto all = bits.front();
    for (const auto& one : bits) {
      EXPECT_EQ(one.size(), all.size());
      for (size_t word = 0; word < all.size(); ++word) all[word] &= one[word];
    }
    answered = false;
    for (auto& rank : ranks_) {
      const auto needs_answer = rank.apply_bits(all, now);
      EXPECT_TRUE(needs_answer);
      answered = *needs_answer;
    }
    if (answered) {
      std::vector<Report> reports;
      for (auto& rank : ranks_) {
        auto report = decode_report(encode(rank.report(now)));
        EXPECT_TRUE(report) << report.error().message;
        reports.push_back(std::move(*report));
      }
      auto answer = ranks_.front().answer(reports);
      EXPECT_TRUE(answer) << answer.error().message;
      const std::string bytes = encode(*answer);
      for (auto& rank : ranks_) {
        const auto heard = rank.apply_answer(*decode_answer(bytes));
        EXPECT_TRUE(heard) << heard.error().message;
      }
    }
    std::vector<Plan> plans;
    for (auto& rank : ranks_) plans.push_back(rank.take_plan());
    for (const Plan& plan : plans) EXPECT_EQ(plan, plans.front());
    return plans.front();
  }

  bool answered = false;  // whether rank 0 had to answer in the last cycle

 private:
  std::vector<Negotiation> ranks_;
};

Signature tensor(std::string name, std::vector<uint64_t> shape = {4}) {
  Signature signature;
  signature.name = std::move(name);
  signature.shape = std::move(shape);
  return signature;
}

Signature in_group(Signature signature, std::string group, uint32_t members) {
  signature.group = std::move(group);
  signature.group_members = members;
  return signature;
}

void submit_all(Ranks& ranks, const Signature& signature) {
  for (int rank = 0; rank < ranks.size(); ++rank) ASSERT_TRUE(ranks[rank].submit(signature, 0ms));
}

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Batch& batch : plan.batches) {
    for (const Agreement& part : batch.parts) names.push_back(part.signature.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Negotiation, PlansATensorWhenTheLastRankSubmitsIt) {
  Ranks ranks(3);
  ASSERT_TRUE(ranks[1].submit(tensor("a"), 0ms));
  EXPECT_EQ(names(ranks.cycle()), Names{});
  ASSERT_TRUE(ranks[0].submit(tensor("a"), 0ms));
  EXPECT_EQ(names(ranks.cycle()), Names{});
  EXPECT_EQ(names(ranks.cycle()), Names{});
  EXPECT_FALSE(ranks.answered);
  ASSERT_TRUE(ranks[2].submit(tensor("a"), 0ms));
  EXPECT_EQ(names(ranks.cycle()), Names{"a"});
  EXPECT_TRUE(ranks.answered);
}

TEST(Negotiation, PlansAKnownTensorWithoutARequest) {
  Ranks ranks(3);
  submit_all(ranks, tensor("a"));
  submit_all(ranks, tensor("b"));
  EXPECT_EQ(names(ranks.cycle()), (Names{"a", "b"}));
  for (int step = 0; step < 3; ++step) {
    submit_all(ranks, tensor("b"));
    ASSERT_TRUE(ranks[0].submit(tensor("a"), 0ms));
    EXPECT_EQ(names(ranks.cycle()), Names{"b"});
    EXPECT_FALSE(ranks.answered);
    ASSERT_TRUE(ranks[1].submit(tensor("a"), 0ms));
    ASSERT_TRUE(ranks[2].submit(tensor("a"), 0ms));
    const Plan plan = ranks.cycle();
    EXPECT_EQ(names(plan), Names{"a"});
    EXPECT_EQ(plan.cached, 1u);
    EXPECT_FALSE(ranks.answered);
  }
}

TEST(Negotiation, NegotiatesAKnownTensorAgainWhenItChanges) {
  Ranks ranks(2);
  submit_all(ranks, tensor("a", {4}));
  EXPECT_EQ(names(ranks.cycle()), Names{"a"});
  // Rank 0 sets its bit, since its own tensor has not changed.
  ASSERT_TRUE(ranks[0].submit(tensor("a", {4}), 0ms));
  ASSERT_TRUE(ranks[1].submit(tensor("a", {5}), 0ms));
  EXPECT_EQ(names(ranks.cycle()), Names{});
  const Plan plan = ranks.cycle();
  ASSERT_EQ(plan.faults.size(), 1u);
  EXPECT_EQ(plan.faults[0].fault, "the ranks do not agree: shape is [4] on rank 0, [5] on rank 1");
  submit_all(ranks, tensor("a", {5}));
  EXPECT_EQ(names(ranks.cycle()), Names{"a"});
}

TEST(Negotiation, NamesEveryDifference) {
  struct Case {
    void (*change)(Signature&);
    std::string message;
  };
  const Case cases[] = {
      {[](Signature& s) { s.operation = Operation::barrier; },
       "operation is allreduce on rank 0, barrier on ranks 1 and 2"},
      {[](Signature& s) { s.type = collectives::Type::f64; },
       "type is f32 on rank 0, f64 on ranks 1 and 2"},
      {[](Signature& s) {
         s.shape = {2, 2};
       },
       "shape is [2, 2] on ranks 1 and 2, [4] on rank 0"},
      {[](Signature& s) { s.reduction = collectives::Reduction::maximum; },
       "reduction is maximum on ranks 1 and 2, sum on rank 0"},
      {[](Signature& s) { s.prescale = 0.5; },
       "prescale is 0.500000 on ranks 1 and 2, 1.000000 on rank 0"},
      {[](Signature& s) { s.postscale = 2; },
       "postscale is 1.000000 on rank 0, 2.000000 on ranks 1 and 2"},
      {[](Signature& s) { s.compression.kind = Compression::Kind::bf16; },
       "compression is bf16 on ranks 1 and 2, none on rank 0"},
      {[](Signature& s) {
         s.reduction = collectives::Reduction::average, s.type = collectives::Type::f64;
       },
       "type is f32 on rank 0, f64 on ranks 1 and 2; reduction is average on ranks 1 and 2, sum on "
       "rank 0"},
  };
  for (const Case& one : cases) {
    Ranks ranks(3);
    Signature changed = tensor("a");
    one.change(changed);
    ASSERT_TRUE(ranks[0].submit(tensor("a"), 0ms));
    ASSERT_TRUE(ranks[1].submit(changed, 0ms));
    ASSERT_TRUE(ranks[2].submit(changed, 0ms));
    const Plan plan = ranks.cycle();
    ASSERT_EQ(plan.faults.size(), 1u) << one.message;
    EXPECT_EQ(plan.faults[0].fault, "the ranks do not agree: " + one.message);
  }
  Ranks ranks(2);
  Signature gather = tensor("g", {2, 3});
  gather.operation = Operation::all_gather;
  ASSERT_TRUE(ranks[0].submit(gather, 0ms));
  gather.shape = {7, 4};
  ASSERT_TRUE(ranks[1].submit(gather, 0ms));
  EXPECT_EQ(ranks.cycle().faults.at(0).fault,
            "the ranks do not agree: shape is [*, 3] on rank 0, [*, 4] on rank 1");
}

TEST(Negotiation, OrdersAndFusesLargerPrioritiesFirst) {
  Ranks ranks(2, {.settings = {.fusion_bytes = 32}});
  Signature urgent = tensor("urgent");
  urgent.priority = 3;
  submit_all(ranks, tensor("a"));
  submit_all(ranks, tensor("b", {2}));
  submit_all(ranks, tensor("large", {100}));
  submit_all(ranks, urgent);
  submit_all(ranks, tensor("c", {2}));
  const auto expected = std::vector<Names>{{"urgent", "a"}, {"b", "c"}, {"large"}};
  for (int step = 0; step < 2; ++step) {
    const Plan plan = ranks.cycle();
    std::vector<Names> batches;
    for (const Batch& batch : plan.batches) {
      Names& batch_names = batches.emplace_back();
      for (const Agreement& part : batch.parts) batch_names.push_back(part.signature.name);
    }
    EXPECT_EQ(batches, expected) << "step " << step;
    for (const char* name : {"c", "large", "b", "a"}) {
      const std::map<std::string, uint64_t> sizes{{"c", 2}, {"large", 100}, {"b", 2}, {"a", 4}};
      submit_all(ranks, tensor(name, {sizes.at(name)}));
    }
    submit_all(ranks, urgent);
  }
}

TEST(Negotiation, FusesOnlyTensorsOfEqualOperationAndType) {
  std::vector<Agreement> ready;
  const auto add = [&](auto change) {
    Agreement& one = ready.emplace_back();
    one.signature = tensor(std::to_string(ready.size()));
    change(one.signature);
  };
  add([](Signature&) {});
  add([](Signature& s) { s.type = collectives::Type::f64; });
  add([](Signature& s) { s.reduction = collectives::Reduction::average; });
  add([](Signature& s) { s.prescale = 2; });
  add([](Signature& s) { s.postscale = 2; });
  add([](Signature& s) { s.set = 1; });
  add([](Signature& s) { s.compression.kind = Compression::Kind::f16; });
  add([](Signature& s) { s.operation = Operation::barrier; });
  add([](Signature& s) { s.operation = Operation::barrier; });
  add([](Signature& s) { s.operation = Operation::broadcast; });
  add([](Signature& s) { s.operation = Operation::broadcast, s.root = 1; });
  EXPECT_EQ(batches_of(ready, {.fusion_bytes = 1 << 20}).size(), ready.size());
  // A broadcast moves bytes of any type.
  add([](Signature& s) { s.operation = Operation::broadcast, s.type = collectives::Type::i64; });
  EXPECT_EQ(batches_of(ready, {.fusion_bytes = 1 << 20}).size(), ready.size() - 1);
  // 16 bytes, and 32 of i64, are above the limit for copying.
  EXPECT_EQ(batches_of(ready, {.fusion_bytes = 1 << 20, .tensor_bytes_max = 15}).size(),
            ready.size());
  // Fuses only groups, for reproducible runs.
  EXPECT_EQ(batches_of(ready, {.fusion_bytes = 1 << 20, .groups_only = true}).size(), ready.size());
  for (Agreement& one : ready) one.signature.group = "g";
  EXPECT_EQ(batches_of(ready, {.fusion_bytes = 1 << 20, .groups_only = true}).size(),
            ready.size() - 1);
}

TEST(Negotiation, ReportsStallsWithTheRanksAndFailsThemInTime) {
  Ranks ranks(4, {.stalls = {.stall_report_after = 60s, .stall_fail_after = 600s}});
  submit_all(ranks, tensor("known"));
  ranks.cycle();
  ASSERT_TRUE(ranks[0].submit(tensor("known"), 1s));
  ASSERT_TRUE(ranks[2].submit(tensor("known"), 5s));
  ASSERT_TRUE(ranks[1].submit(tensor("new"), 2s));
  EXPECT_EQ(ranks.cycle(30s).stalls, "");
  EXPECT_EQ(ranks.cycle(60s).stalls, "");
  EXPECT_EQ(ranks.cycle(61s).stalls,
            "known waits for ranks 1 and 3 since 60 s; ranks 0 and 2 submitted it");
  EXPECT_EQ(ranks.cycle(62s).stalls, "") << "it was reported just before";
  EXPECT_EQ(ranks.cycle(121s).stalls,
            "known waits for ranks 1 and 3 since 120 s; ranks 0 and 2 submitted it\n"
            "new waits for ranks 0, 2 and 3 since 119 s; rank 1 submitted it");
  const Plan plan = ranks.cycle(601s);
  ASSERT_EQ(plan.faults.size(), 1u);
  EXPECT_EQ(plan.faults[0].signature.name, "known");
  EXPECT_TRUE(plan.faults[0].late);
  EXPECT_EQ(plan.faults[0].fault, "waits for ranks 1 and 3 since 600 s");
  // The name can be submitted again, and the other tensor completes.
  submit_all(ranks, tensor("known"));
  for (const int rank : {0, 2, 3}) ASSERT_TRUE(ranks[rank].submit(tensor("new"), 601s));
  EXPECT_EQ(names(ranks.cycle(601s)), (Names{"known", "new"}));
}

TEST(Negotiation, AnAnswerWithoutARequestIsCorrupt) {
  Signature gather = tensor("g", {2, 3});
  gather.operation = Operation::all_gather;
  Signature exchange = tensor("x", {3, 3});
  exchange.operation = Operation::all_to_all;
  exchange.splits = {1, 2};
  const auto answered = [&](const Agreement& agreement) {
    Negotiation negotiation(0, 2, {});
    for (const Signature& signature : {tensor("t"), gather, exchange})
      EXPECT_TRUE(negotiation.submit(signature, 0ms));
    (void)negotiation.report(0ms);
    Answer answer;
    answer.ready.push_back(agreement);
    return negotiation.apply_answer(answer);
  };
  EXPECT_TRUE(answered({tensor("t"), {}}));
  EXPECT_TRUE(answered({gather, {2, 7}}));
  EXPECT_TRUE(answered({exchange, {1, 2, 5, 6}}));
  Signature other_type = tensor("t");
  other_type.type = collectives::Type::f64;
  Signature other_row = gather;
  other_row.shape = {2, 4};
  for (const Agreement& agreement :
       {Agreement{tensor("t", {5}), {}}, Agreement{other_type, {}}, Agreement{tensor("u"), {}},
        Agreement{tensor("t"), {1}}, Agreement{gather, {3, 7}}, Agreement{gather, {2}},
        Agreement{gather, {2, uint64_t{1} << 60}}, Agreement{other_row, {2, 7}},
        Agreement{exchange, {2, 1, 5, 6}}}) {
    const auto heard = answered(agreement);
    ASSERT_FALSE(heard);
    EXPECT_EQ(heard.error().kind, Kind::corrupt) << heard.error().message;
  }
}

TEST(Negotiation, AllRanksLearnWhichRankLeaves) {
  Ranks ranks(3);
  ranks[1].leave();
  EXPECT_EQ(ranks.cycle().leaving, std::vector<uint32_t>{1});
}

TEST(Negotiation, NewSettingsReachAllRanksInOneCycle) {
  Ranks ranks(3);
  ranks[0].change({.fusion_bytes = 77, .cycle_microseconds = 5});
  EXPECT_EQ(ranks.cycle().settings->fusion_bytes, 77u);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks[rank].settings().cycle_microseconds, 5u);
  EXPECT_FALSE(ranks.cycle().settings);
}

TEST(Negotiation, EvictsTheLeastRecentlyUsedEntryOfAFullCache) {
  Ranks ranks(2, {.cache_entries_max = 2});
  for (const char* name : {"a", "b"}) {
    submit_all(ranks, tensor(name));
    ranks.cycle();
  }
  const auto needs_answer = [&](const char* name) {
    submit_all(ranks, tensor(name));
    EXPECT_EQ(names(ranks.cycle()), Names{name});
    return ranks.answered;
  };
  EXPECT_FALSE(needs_answer("a"));
  EXPECT_TRUE(needs_answer("c"));  // evicts b
  EXPECT_FALSE(needs_answer("a"));
  EXPECT_TRUE(needs_answer("b"));  // evicts c
  EXPECT_FALSE(needs_answer("a"));
}

// Every rank submits the same tensors in its own order and at its own pace, in steps that overlap.
// Shapes change from time to time, caches overflow, some tensors differ on one rank, and some are
// members of groups or sets.
struct World {
  World(int ranks, uint64_t seed)
      : random(seed),
        ranks(ranks,
              {.settings = {.fusion_bytes = 200}, .cache_entries_max = random.below(3) * 6}) {}

  SeededRandom random;
  Ranks ranks;
};

struct RequestSpec {
  Signature signature;
  int odd_rank = -1;  // requests something else under this name
};

std::vector<RequestSpec> specs_of_a_step(World& world, int step) {
  std::vector<RequestSpec> specs;
  const int ranks = world.ranks.size();
  for (int i = 0; i < 14; ++i) {
    RequestSpec spec{
        tensor("t" + std::to_string(i), {1 + world.random.below(2) * uint64_t(step / 3), 3})};
    const int operations = 7;
    spec.signature.operation = Operation(i % operations);
    if (spec.signature.operation == Operation::all_to_all) {
      spec.signature.splits.assign(size_t(ranks), 0);
      spec.signature.splits[0] = spec.signature.rows();
    }
    spec.signature.root = ranks / 2;
    spec.signature.priority = int(world.random.below(3));
    if (i == 0 || i == 7 || i == 1) spec.signature = in_group(spec.signature, "g", 3);
    if (ranks > 1 && world.random.chance(20))
      spec.odd_rank = int(world.random.below(uint64_t(ranks)));
    specs.push_back(std::move(spec));
  }
  if (world.ranks[0].sets().size() > 1) {
    specs.push_back({tensor("t0")});
    specs.back().signature.set = 1;
  }
  return specs;
}

using Orders = std::vector<std::vector<size_t>>;  // by rank: positions in the wishes

// Returns a random order of each rank's wishes.
Orders random_orders(World& world, const std::vector<RequestSpec>& specs) {
  Orders orders;
  for (int rank = 0; rank < world.ranks.size(); ++rank) {
    std::vector<size_t> order;
    for (size_t i = 0; i < specs.size(); ++i) {
      const auto& members = world.ranks[0].sets().at(specs[i].signature.set);
      if (std::find(members.begin(), members.end(), rank) != members.end()) order.push_back(i);
    }
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[world.random.below(i)]);
    orders.push_back(std::move(order));
  }
  return orders;
}

// Checks the plans of one step.
class StepChecks {
 public:
  StepChecks(World& world, const std::vector<RequestSpec>& specs) : specs_(specs) {
    for (const RequestSpec& spec : specs) {
      waits_for_[key_of(spec.signature)] = int(world.ranks[0].sets().at(spec.signature.set).size());
      group_is_odd_ = group_is_odd_ || (spec.odd_rank >= 0 && !spec.signature.group.empty());
    }
  }
  void submitted(const Signature& signature) { --waits_for_[key_of(signature)]; }
  bool all_done() const { return done_.size() == specs_.size(); }

  void check(const Plan& plan) {
    std::vector<Agreement> outcomes = plan.faults;
    for (const Batch& batch : plan.batches) {
      uint64_t bytes = 0;
      for (const Agreement& part : batch.parts) {
        bytes += bytes_of(part);
        outcomes.push_back(part);
      }
      EXPECT_TRUE(bytes <= 200 || batch.parts.size() == 1);
    }
    int in_group_now = 0;
    for (const Agreement& outcome : outcomes) {
      const std::string key = key_of(outcome.signature);
      EXPECT_TRUE(done_.insert(key).second) << key << " a second time";
      EXPECT_EQ(waits_for_[key], 0) << key << " before all had it";
      const auto spec = std::find_if(specs_.begin(), specs_.end(), [&](const RequestSpec& each) {
        return key_of(each.signature) == key;
      });
      ASSERT_NE(spec, specs_.end());
      const bool grouped = !spec->signature.group.empty();
      EXPECT_EQ(!outcome.fault.empty(), grouped ? group_is_odd_ : spec->odd_rank >= 0)
          << key << outcome.fault;
      in_group_now += grouped ? 1 : 0;
    }
    EXPECT_TRUE(in_group_now == 0 || in_group_now == 3) << "a group is planned as a whole";
  }

 private:
  const std::vector<RequestSpec>& specs_;
  bool group_is_odd_ = false;
  std::map<std::string, int> waits_for_;  // by key: members that did not submit it
  std::set<std::string> done_;
};

void play_step(World& world, int step) {
  Ranks& ranks = world.ranks;
  const auto specs = specs_of_a_step(world, step);
  Orders orders = random_orders(world, specs);
  StepChecks checks(world, specs);
  constexpr int cycles_max = 400;
  int cycle = 0;
  for (; !checks.all_done() && cycle < cycles_max; ++cycle) {
    for (int rank = 0; rank < ranks.size(); ++rank) {
      auto& order = orders[size_t(rank)];
      for (auto more = world.random.below(6); more > 0 && !order.empty(); --more) {
        const RequestSpec& spec = specs[order.back()];
        Signature signature = spec.signature;
        if (spec.odd_rank == rank) signature.type = collectives::Type::f64;
        const auto result = ranks[rank].submit(signature, 0ms);
        ASSERT_TRUE(result) << result.error().message;
        checks.submitted(signature);
        order.pop_back();
      }
    }
    checks.check(ranks.cycle());
  }
  ASSERT_LT(cycle, cycles_max) << "some tensors were never carried out";
  for (int rank = 0; rank < ranks.size(); ++rank) EXPECT_TRUE(ranks[rank].idle());
}

void play_random_orders(int ranks_count, uint64_t seed) {
  SCOPED_TRACE("ranks " + std::to_string(ranks_count) + ", seed " + std::to_string(seed));
  World world(ranks_count, seed);
  if (ranks_count > 1) {
    Signature set = tensor("set", {});
    set.operation = Operation::add_set;
    set.splits = {0, uint64_t(ranks_count - 1)};
    submit_all(world.ranks, set);
    EXPECT_EQ(names(world.ranks.cycle()), Names{"set"});
  }
  for (int step = 0; step < 8; ++step) {
    play_step(world, step);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Negotiation, AllRanksMakeTheSamePlansInAnyOrderOfSubmission) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      play_random_orders(ranks, seed);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Ranks finish their data one after the other, while the others continue.
TEST(Negotiation, JoinedRanksDoNotDelayOthers) {
  for (int count = 1; count <= 9; ++count) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE("ranks " + std::to_string(count) + ", seed " + std::to_string(seed));
      SeededRandom random(seed);
      Ranks ranks(count);
      for (int round = 0; round < 3; ++round) {
        std::vector<uint64_t> batches;
        for (int rank = 0; rank < count; ++rank) batches.push_back(random.below(6));
        std::vector<uint64_t> at(size_t(count), 0);
        std::vector<bool> joined(size_t(count), false), busy(size_t(count), false);
        int carried_out = 0;
        bool over = false;
        int last_to_join = -1;
        for (int cycle = 0; cycle < 200 && !over; ++cycle) {
          int last_now = -1;
          for (int rank = 0; rank < count; ++rank) {
            const auto index = size_t(rank);
            if (busy[index] || joined[index] || random.chance(3)) continue;
            if (at[index] < batches[index]) {
              busy[index] = true;
              ASSERT_TRUE(ranks[rank].submit(tensor("w"), 0ms));
            } else {
              joined[index] = true;
              last_now = rank;
              Signature join = tensor("join", {});
              join.operation = Operation::join;
              ASSERT_TRUE(ranks[rank].submit(join, 0ms));
            }
          }
          if (last_now >= 0) last_to_join = last_now;
          for (const Batch& batch : ranks.cycle().batches) {
            const Agreement& part = batch.parts.front();
            if (part.signature.operation == Operation::join) {
              EXPECT_EQ(part.last, last_to_join);
              over = true;
              continue;
            }
            ++carried_out;
            for (int rank = 0; rank < count; ++rank) {
              const auto index = size_t(rank);
              EXPECT_TRUE(busy[index] || joined[index]);
              at[index] += busy[index] ? 1 : 0;
              busy[index] = false;
            }
          }
        }
        EXPECT_TRUE(over);
        EXPECT_EQ(carried_out, int(*std::max_element(batches.begin(), batches.end())));
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::gradients
