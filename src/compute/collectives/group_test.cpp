// Tests whole groups, with a thread for each rank: in memory, over TCP on loopback and through
// shared memory.
#include "collectives/group.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include "collectives/reference.hpp"
#include "collectives/select.hpp"
#include "collectives/testing/cases.hpp"
#include "collectives/testing/circle.hpp"
#include "collectives/testing/groups.hpp"

namespace trainyard::collectives {
namespace {

using namespace testing;

Bytes expected_sum(const Group& group, Type type, Reduction reduction,
                   const std::vector<Bytes>& inputs) {
  const size_t elements = inputs[0].size() / bytes_of(type);
  const Choice& choice = group.table().choose(plan::Operation::allreduce, inputs[0].size());
  if (inputs.size() == 1) return inputs[0];
  return reference::reduced(type, reduction, inputs, [&](size_t element) {
    if (choice.algorithm == plan::Algorithm::hierarchical)
      return plan::hierarchical_expression(group.hosts(), elements, choice.between, element);
    plan::Plan plan;
    plan.operation = plan::Operation::allreduce;
    plan.algorithm = choice.algorithm;
    plan.ranks = group.size();
    plan.elements = elements;
    return plan::expression(plan, element);
  });
}

// Runs allreduces of sizes from zero to more than any buffer between two ranks, in and out of
// place, several times over the same connections.
void play_sums_up_to(Group& group, size_t elements_max) {
  for (const size_t elements : {0, 1, 7, 999, 20'001, 400'001}) {
    if (elements > elements_max) break;
    for (const auto& [type, reduction] :
         {std::pair{Type::f32, Reduction::sum}, {Type::bf16, Reduction::average}}) {
      if (type == Type::bf16 && elements > 1000) continue;
      const auto inputs = awkward_inputs(type, group.size(), elements);
      const Bytes expected = expected_sum(group, type, reduction, inputs);
      Bytes values = inputs[size_t(group.rank())];
      expect_ok(group.run(
          calls::allreduce(BufferView{values.data(), elements, type}, {.reduction = reduction})));
      EXPECT_EQ(values == expected, true) << elements << " in place";
      const Bytes& input = inputs[size_t(group.rank())];
      Bytes output(input.size());
      expect_ok(group.run(calls::allreduce({input.data(), elements, type},
                                           BufferView{output.data(), elements, type},
                                           {.reduction = reduction})));
      EXPECT_EQ(output == expected, true) << elements << " out of place";
    }
  }
}

void play_sums(Group& group) { play_sums_up_to(group, 400'001); }

void play_reductions(Group& group) {
  const int ranks = group.size();
  const int rank = group.rank();
  std::vector<double> precise{1.0 + 0x1.0p-40, double(rank)};
  expect_ok(group.allreduce(precise));
  EXPECT_EQ(precise, (std::vector<double>{double(ranks) * (1.0 + 0x1.0p-40),
                                          double(ranks * (ranks - 1) / 2)}));
  std::vector<float> extreme{float(rank), -float(rank)};
  expect_ok(group.allreduce(extreme, Reduction::maximum));
  EXPECT_EQ(extreme, (std::vector<float>{float(ranks - 1), 0}));
  expect_ok(group.allreduce(extreme, Reduction::minimum));

  // Scales the input before the reduction, and averages.
  std::vector<float> scaled{float(rank + 1) * 4};
  expect_ok(group.run(calls::allreduce(buffer_view(std::span(scaled)),
                                       {.reduction = Reduction::average, .prescale = 0.5})));
  EXPECT_EQ(scaled[0], float(ranks + 1));
}

void play_texts(Group& group) {
  const int ranks = group.size();
  const int rank = group.rank();
  std::string text = rank == ranks - 1 ? "from the last rank" : "..................";
  expect_ok(group.broadcast(std::as_writable_bytes(std::span(text)), ranks - 1));
  EXPECT_EQ(text, "from the last rank");

  const auto texts = group.all_gather(std::string(size_t(rank), 'x'));
  ASSERT_TRUE(texts) << texts.error().message;
  for (int peer = 0; peer < ranks; ++peer)
    EXPECT_EQ((*texts)[size_t(peer)], std::string(size_t(peer), 'x'));
}

// Runs the operations that divide a buffer into a block for each rank.
void play_blocks(Group& group) {
  const int ranks = group.size();
  const int rank = group.rank();
  const auto count = size_t(ranks);
  // Element i of rank r is 1000 r + i.
  std::vector<int32_t> whole(count * 3 + 1);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = int32_t(1000 * size_t(rank) + i);
  const auto sum_at = [&](size_t i) { return int32_t(1000 * count * (count - 1) / 2 + count * i); };
  std::vector<size_t> counts;
  size_t begin = 0;
  for (size_t peer = 0; peer < count; ++peer) counts.push_back(peer == 0 ? 4 : 3);
  for (int peer = 0; peer < rank; ++peer) begin += counts[size_t(peer)];
  std::vector<int32_t> own(counts[size_t(rank)]);
  expect_ok(group.run(calls::reduce_scatter(buffer_view(std::span<const int32_t>(whole)),
                                            buffer_view(std::span(own)))));
  for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i], sum_at(begin + i));

  std::vector<int32_t> gathered(whole.size());
  expect_ok(group.run(calls::all_gather(buffer_view(std::span<const int32_t>(own)),
                                        buffer_view(std::span(gathered)), counts)));
  for (size_t i = 0; i < gathered.size(); ++i) EXPECT_EQ(gathered[i], sum_at(i));

  const int root = ranks / 2;
  std::vector<int32_t> total(rank == root ? whole.size() : 0);
  expect_ok(group.run(calls::reduce(buffer_view(std::span<const int32_t>(whole)),
                                    buffer_view(std::span(total)), root)));
  for (size_t i = 0; i < total.size(); ++i) EXPECT_EQ(total[i], sum_at(i));

  std::vector<int32_t> collected(rank == root ? whole.size() : 0);
  expect_ok(group.run(calls::gather(buffer_view(std::span<const int32_t>(own)),
                                    buffer_view(std::span(collected)), root, counts)));
  EXPECT_TRUE(rank != root || collected == gathered);
  std::vector<int32_t> scattered(own.size());
  expect_ok(group.run(calls::scatter(buffer_view(std::span<const int32_t>(collected)),
                                     buffer_view(std::span(scattered)), root, counts)));
  EXPECT_EQ(scattered, own);
}

void play_exchanges(Group& group) {
  const int ranks = group.size();
  const int rank = group.rank();
  const auto count = size_t(ranks);
  std::vector<int32_t> mine, theirs(count);
  for (int peer = 0; peer < ranks; ++peer) mine.push_back(rank * 100 + peer);
  expect_ok(group.run(calls::all_to_all(buffer_view(std::span<const int32_t>(mine)),
                                        buffer_view(std::span(theirs)))));
  for (int peer = 0; peer < ranks; ++peer) EXPECT_EQ(theirs[size_t(peer)], peer * 100 + rank);

  if (ranks > 1 && rank < 2) {
    std::vector<float> message(300'000, float(rank));
    if (rank == 0)
      expect_ok(group.send(1, buffer_view(std::span<const float>(message)), "activations"));
    if (rank == 1) expect_ok(group.receive(0, buffer_view(std::span(message)), "activations"));
    EXPECT_EQ(message, std::vector<float>(300'000, 0.0f));
  }
}

// Runs every other operation.
void play_everything(Group& group) {
  play_reductions(group);
  play_texts(group);
  play_blocks(group);
  play_exchanges(group);
  expect_ok(group.barrier());
}

TEST(Group, EveryOperationInMemory) {
  for (const int ranks : {1, 2, 3, 5}) {
    run_ranks_in_memory(ranks, play_sums);
    run_ranks_in_memory(ranks, play_everything);
  }
}

TEST(Group, EveryOperationOverTcp) {
  for (const int ranks : {1, 2, 3, 5}) run_ranks(LinkKind::tcp, ranks, play_everything);
  for (const int ranks : {2, 3}) run_ranks(LinkKind::tcp, ranks, play_sums);
}

TEST(Group, EveryOperationThroughSharedMemory) {
  for (const int ranks : {1, 2, 3, 5}) run_ranks(LinkKind::shared, ranks, play_everything);
  for (const int ranks : {2, 3, 5}) run_ranks(LinkKind::shared, ranks, play_sums);
}

TEST(Group, EveryPlanOverEveryTransport) {
  for (const std::string& plan : allreduce_plans()) {
    const std::string plans = "allreduce=" + plan + ":0-";
    for (const LinkKind links : {LinkKind::tcp, LinkKind::shared})
      run_ranks(
          links, 3, [](Group& group) { play_sums_up_to(group, 20'001); }, plans);
  }
}

TEST(Group, RanksOnOneMachineFindEachOther) {
  run_ranks(LinkKind::shared, 3, [](Group& group) {
    EXPECT_EQ(group.hosts(), (std::vector<int>{0, 0, 0}));
  });
  run_ranks(LinkKind::tcp, 3, [](Group& group) {
    EXPECT_EQ(group.hosts(), (std::vector<int>{0, 1, 2}));
  });
}

TEST(Group, RanksThatShareACoreChoosePlansForIt) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &usable)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);  // the ranks' threads inherit it
  run_ranks(LinkKind::shared, 8, [](Group& group) {
    EXPECT_EQ(group.table().choose(plan::Operation::allreduce, 1024).algorithm,
              plan::Algorithm::one_shot);
    std::vector<float> values(256, float(group.rank()));
    expect_ok(group.allreduce(values));
    EXPECT_EQ(values, std::vector<float>(256, 28));
  });
  ASSERT_EQ(sched_setaffinity(0, sizeof usable, &usable), 0);
}

TEST(Group, AllRanksMeasureTheSameTable) {
  const auto all = endpoints(3);
  std::vector<std::string> tables(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto mine = options(all, rank);
      mine.group.deterministic = false;
      mine.group.plans = "broadcast=tree:0-1K";
      auto group = join_over_tcp(mine);
      ASSERT_TRUE(group) << group.error().message;
      tables[size_t(rank)] = (*group)->table().text();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(tables[0], tables[1]);
  EXPECT_EQ(tables[0], tables[2]);
  EXPECT_NE(tables[0].find("broadcast=tree:0-1K"), std::string::npos) << tables[0];
}

TEST(Group, RegisteredMemoryGivesTheSameSums) {
  run_ranks(LinkKind::shared, 3, [](Group& group) {
    for (const size_t elements : {size_t(100), size_t(200'000)}) {
      const auto inputs = awkward_inputs(Type::f32, group.size(), elements);
      const Bytes expected = expected_sum(group, Type::f32, Reduction::sum, inputs);
      const auto memory = group.allocate(elements * sizeof(float));
      ASSERT_TRUE(memory) << memory.error().message;
      for (int i = 0; i < 3; ++i) {
        std::copy(inputs[size_t(group.rank())].begin(), inputs[size_t(group.rank())].end(),
                  memory->begin());
        expect_ok(group.run(calls::allreduce(BufferView{memory->data(), elements, Type::f32})));
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory->begin()));
      }
      expect_ok(group.barrier());
      group.free(*memory);
    }
  });
}

TEST(Group, OperationsCanBeStartedAndWaitedFor) {
  const auto play = [](Group& group) {
    std::vector<std::vector<float>> buckets(20, std::vector<float>(5000, 1.0f));
    std::vector<Handle> handles;
    for (auto& bucket : buckets)
      handles.push_back(
          group.start(calls::allreduce(buffer_view(std::span(bucket)), {.name = "bucket"})));
    // A synchronous call while the queue is not empty runs in the order of the calls.
    std::vector<float> more(10, 2.0f);
    expect_ok(group.allreduce(more));
    EXPECT_EQ(more[0], 2.0f * float(group.size()));
    for (Handle& handle : handles) expect_ok(handle.wait());
    for (const auto& bucket : buckets)
      EXPECT_EQ(bucket, std::vector<float>(5000, float(group.size())));
    EXPECT_GE(group.counters().operations, 21u);
  };
  run_ranks_in_memory(3, play);
  run_ranks(LinkKind::shared, 3, play);
}

TEST(Group, PartsOfAGroupWorkAtTheSameTimeAsTheWhole) {
  const auto play = [](Group& group) {
    auto part = group.split(group.rank() % 2, {.deterministic = true});
    ASSERT_TRUE(part) << part.error().message;
    EXPECT_EQ((*part)->size(), group.rank() % 2 == 0 ? (group.size() + 1) / 2 : group.size() / 2);
    std::thread other([&] {
      for (int i = 0; i < 50; ++i) {
        std::vector<float> values(3000, 1.0f);
        expect_ok((*part)->allreduce(values));
        EXPECT_EQ(values[2999], float((*part)->size()));
      }
    });
    for (int i = 0; i < 50; ++i) {
      std::vector<float> values(3000, 1.0f);
      expect_ok(group.allreduce(values));
      EXPECT_EQ(values[2999], float(group.size()));
    }
    other.join();
    const auto nothing = group.split(-1);
    EXPECT_TRUE(nothing && *nothing == nullptr);
  };
  run_ranks_in_memory(4, play);
  run_ranks(LinkKind::shared, 5, play);
  run_ranks(LinkKind::tcp, 4, play);
}

TEST(Group, StartsAndRecordsMessagesBetweenTwoRanksLikeCalls) {
  const auto all = endpoints(2);
  std::atomic<bool> seen = false;
  const auto play = [&](int rank) {
    auto mine = options(all, rank);
    mine.group.timeline = true;
    auto joined = join_over_tcp(mine);
    ASSERT_TRUE(joined) << joined.error().message;
    Group& group = **joined;
    std::vector<float> values(10'000, float(rank + 1));
    if (rank == 0) {
      Handle handle = group.start_receive(1, buffer_view(std::span(values)), "activations");
      // Reads the stall report meanwhile.
      while (group.current_operation().find("receive from rank 1 of activations (40000 bytes)") ==
             std::string::npos)
        std::this_thread::yield();
      EXPECT_FALSE(handle.done());
      seen = true;
      expect_ok(handle.wait());
      EXPECT_EQ(values, std::vector<float>(10'000, 2.0f));
      EXPECT_NE(group.timeline().find("receive from rank 1 of activations"), std::string::npos);
    } else {
      while (!seen) std::this_thread::yield();
      Handle handle =
          group.start_send(0, buffer_view(std::span<const float>(values)), "activations");
      expect_ok(handle.wait());
      EXPECT_NE(group.timeline().find("send to rank 0 of activations"), std::string::npos);
    }
    EXPECT_EQ(group.counters().operations, 1u);
    EXPECT_EQ(group.counters().bytes, 40'000u);
    EXPECT_EQ(
        group.start_send(rank, buffer_view(std::span<const float>(values))).wait().error().kind,
        Kind::invalid);
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
}

bool has(const Result<bool>& message) {
  EXPECT_TRUE(message) << message.error().message;
  return message && *message;
}

TEST(Group, HasMessageIsTrueAsSoonAsAMessageHasBegunToArrive) {
  const auto play = [](Group& group) {
    const int last = group.size() - 1;
    std::vector<uint8_t> go(1);
    if (group.rank() > 0) expect_ok(group.receive(0, buffer_view(std::span(go))));
    if (group.rank() == 0) {
      for (int peer = 1; peer <= last; ++peer) EXPECT_FALSE(has(group.has_message(peer)));
      for (int peer = 1; peer <= last; ++peer)
        expect_ok(group.send(peer, buffer_view(std::span<const uint8_t>(go))));
      std::vector<float> values(100'000);
      for (int message = 0; message < 2; ++message) {
        while (!has(group.has_message(last))) std::this_thread::yield();
        EXPECT_TRUE(has(group.has_message(last))) << "has_message() does not consume the message";
        expect_ok(group.receive(last, buffer_view(std::span(values))));
        EXPECT_EQ(values.back(), float(message));
      }
      EXPECT_EQ(group.has_message(0).error().kind, Kind::invalid);
    } else if (group.rank() == last) {
      for (int message = 0; message < 2; ++message) {
        const std::vector<float> values(100'000, float(message));
        expect_ok(group.send(0, buffer_view(std::span(values))));
      }
    }
    expect_ok(group.barrier());
  };
  run_ranks_in_memory(3, play);
  run_ranks(LinkKind::shared, 3, play);
  run_ranks(LinkKind::tcp, 3, play);
}

TEST(Group, HasMessageReportsARankThatAbandonedTheGroup) {
  for (const LinkKind links : {LinkKind::shared, LinkKind::tcp}) {
    run_owning_ranks(links, 2, [](std::unique_ptr<Group> group) {
      if (group->rank() == 1) return group->abandon("no memory");
      for (;;) {
        const auto has = group->has_message(1);
        if (has) {
          std::this_thread::yield();
          continue;
        }
        EXPECT_NE(has.error().message.find("no memory"), std::string::npos) << has.error().message;
        return;
      }
    });
  }
}

TEST(Group, PartsOfAGroupHaveItsOptions) {
  const auto play = [](Group& group) {
    auto part = group.split(group.rank() % 2);
    ASSERT_TRUE(part) << part.error().message;
    // With `deterministic`, the rows come from the default costs, whatever the links cost.
    auto expected = Table::made_from({}, (*part)->hosts());
    ASSERT_TRUE(expected.override_with("allreduce=tree:0-64K,ring:64K-"));
    EXPECT_EQ((*part)->table().text(), expected.text());
    expect_ok((*part)->barrier());
    EXPECT_NE((*part)->timeline().find("barrier"), std::string::npos);
    auto other = group.split(0, {.deterministic = true, .plans = "allreduce=direct:0-"});
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_NE((*other)->table().text().find("allreduce=direct:0-  # requested"), std::string::npos);
    expect_ok((*other)->barrier());
    EXPECT_EQ((*other)->timeline().find("barrier"), std::string::npos);
  };
  const auto all = endpoints(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      auto mine = options(all, rank);
      mine.group = {
          .deterministic = true, .plans = "allreduce=tree:0-64K,ring:64K-", .timeline = true};
      auto group = join_over_tcp(mine);
      ASSERT_TRUE(group) << group.error().message;
      play(**group);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Group, RejectsInvalidArgumentsBeforeAnythingIsSent) {
  run_ranks_in_memory(2, [](Group& group) {
    std::vector<float> three(3), two(2);
    const auto refused = [&](const Call& call, const char* why) {
      const auto result = group.run(call);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, Kind::invalid);
      EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    };
    const auto in = buffer_view(std::span<const float>(three));
    const auto out = buffer_view(std::span(two));
    refused(calls::allreduce(in, out), "2 elements where 3");
    refused(calls::broadcast(out, 2), "invalid root: rank 2");
    refused(calls::reduce_scatter(in, out, {}, {1, 1}), "3 elements where 2");
    refused(calls::reduce_scatter(in, out, {}, {3}), "one is needed for each rank");
    refused(calls::all_gather(in, out), "2 elements where 6");
    refused(calls::all_to_all(in, buffer_view(std::span(three))), "divisible");
    bool truth[2] = {true, false};
    refused(
        calls::allreduce(BufferView{truth, 2, Type::boolean}, {.reduction = Reduction::average}),
        "average");
    expect_ok(group.barrier());  // the group still works
  });
}

TEST(Group, TheTimelineNamesOperationsAndPlans) {
  auto groups = join_in_memory(1, {.deterministic = true, .timeline = true});
  std::vector<float> values(100);
  expect_ok(
      groups[0]->run(calls::allreduce(buffer_view(std::span(values)), {.name = "layer \"1\""})));
  const std::string timeline = groups[0]->timeline();
  EXPECT_NE(timeline.find("allreduce of layer \\\"1\\\""), std::string::npos) << timeline;
  EXPECT_NE(timeline.find("\"bytes\":400"), std::string::npos) << timeline;
}

TEST(Group, NoRankLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> came = 0;
  run_ranks_over_tcp(4, [&](Group& group) {
    ++came;
    expect_ok(group.barrier());
    EXPECT_EQ(came, 4);
  });
}

TEST(Group, ARankMayLeaveWhenItIsDone) {
  // Ranks end at different times. The goodbye of a destructor does not count as a failure.
  run_ranks_over_tcp(3, [](Group& group) {
    std::vector<float> values(1000, 1.0f);
    for (int i = 0; i < 20; ++i) expect_ok(group.allreduce(values));
  });
}

}  // namespace
}  // namespace trainyard::collectives
