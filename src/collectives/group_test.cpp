// Whole groups: a thread for each rank, in memory, over TCP on loopback and through shared memory.
#include "collectives/group.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "collectives/reference.hpp"
#include "collectives/select.hpp"
#include "collectives/testing/circle.hpp"

namespace trainyard::collectives {
namespace {

// Addresses of loopback that no other test process of this machine uses: 127/8 is ours to the last bit.
std::vector<Endpoint> endpoints(int ranks) {
  static std::atomic<int> groups = 0;
  const int group = groups++;
  const auto process = unsigned(getpid());
  std::vector<Endpoint> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back({"127." + std::to_string(1 + process / 250 % 250) + "." +
                       std::to_string(1 + process % 250) + "." + std::to_string(1 + rank),
                   uint16_t(7830 + group)});
  }
  return all;
}

using testing::awkward_inputs;
using testing::Bytes;

enum class Way { tcp, shared };

TcpOptions options(const std::vector<Endpoint>& endpoints, int rank, Way way = Way::shared) {
  TcpOptions options;
  options.endpoints = endpoints;
  options.rank = rank;
  options.shared_value = "group_test";
  options.join_deadline = 60s;
  options.silence_max = 60s;
  options.share_memory = way == Way::shared;
  options.group.deterministic = true;
  return options;
}

// Plays every rank in a thread of its own.
void over(Way way, int ranks, const std::function<void(Group&)>& play, const std::string& plans = "") {
  const auto all = endpoints(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto mine = options(all, rank, way);
      mine.group.plans = plans;
      auto group = join_over_tcp(mine);
      ASSERT_TRUE(group) << group.error().message;
      play(**group);
    });
  }
  for (auto& thread : threads) thread.join();
}

void over_tcp(int ranks, const std::function<void(Group&)>& play) { over(Way::tcp, ranks, play); }

void in_memory(int ranks, const std::function<void(Group&)>& play) {
  auto groups = join_in_memory(ranks);
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&] { play(*group); });
  for (auto& thread : threads) thread.join();
}

void expect_ok(const Result<void>& result) { EXPECT_TRUE(result) << result.error().message; }

Bytes expected_sum(const Group& group, Type type, Reduction reduction, const std::vector<Bytes>& inputs) {
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

// Allreduces of sizes from nothing to beyond any buffer between two ranks, in and out of place, whatever plan they
// get; several times over the same connections.
void play_sums_up_to(Group& group, size_t elements_max) {
  for (const size_t elements : {0, 1, 7, 999, 20'001, 400'001}) {
    if (elements > elements_max) break;
    for (const auto& [type, reduction] :
         {std::pair{Type::f32, Reduction::sum}, {Type::bf16, Reduction::average}}) {
      if (type == Type::bf16 && elements > 1000) continue;
      const auto inputs = awkward_inputs(type, group.size(), elements);
      const Bytes expected = expected_sum(group, type, reduction, inputs);
      Bytes values = inputs[size_t(group.rank())];
      expect_ok(
          group.run(calls::allreduce(Numbers{values.data(), elements, type}, {.reduction = reduction})));
      EXPECT_EQ(values == expected, true) << elements << " in place";
      const Bytes& input = inputs[size_t(group.rank())];
      Bytes output(input.size());
      expect_ok(group.run(calls::allreduce(
          {input.data(), elements, type}, Numbers{output.data(), elements, type}, {.reduction = reduction})));
      EXPECT_EQ(output == expected, true) << elements << " out of place";
    }
  }
}

void play_sums(Group& group) { play_sums_up_to(group, 400'001); }

// Every other operation.
void play_everything(Group& group) {
  const int ranks = group.size();
  const int rank = group.rank();
  const auto count = size_t(ranks);

  std::vector<double> precise{1.0 + 0x1.0p-40, double(rank)};
  expect_ok(group.allreduce(precise));
  EXPECT_EQ(precise,
            (std::vector<double>{double(ranks) * (1.0 + 0x1.0p-40), double(ranks * (ranks - 1) / 2)}));
  std::vector<float> extreme{float(rank), -float(rank)};
  expect_ok(group.allreduce(extreme, Reduction::maximum));
  EXPECT_EQ(extreme, (std::vector<float>{float(ranks - 1), 0}));
  expect_ok(group.allreduce(extreme, Reduction::minimum));

  // Scaled before, averaged after.
  std::vector<float> scaled{float(rank + 1) * 4};
  expect_ok(group.run(
      calls::allreduce(numbers(std::span(scaled)), {.reduction = Reduction::average, .prescale = 0.5})));
  EXPECT_EQ(scaled[0], float(ranks + 1));

  std::string text = rank == ranks - 1 ? "from the last rank" : "..................";
  expect_ok(group.broadcast(std::as_writable_bytes(std::span(text)), ranks - 1));
  EXPECT_EQ(text, "from the last rank");

  const auto texts = group.all_gather(std::string(size_t(rank), 'x'));
  ASSERT_TRUE(texts) << texts.error().message;
  for (int peer = 0; peer < ranks; ++peer) EXPECT_EQ((*texts)[size_t(peer)], std::string(size_t(peer), 'x'));

  // Element i of rank r is 1000 r + i.
  std::vector<int32_t> whole(count * 3 + 1);
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = int32_t(1000 * size_t(rank) + i);
  const auto sum_at = [&](size_t i) { return int32_t(1000 * count * (count - 1) / 2 + count * i); };
  std::vector<size_t> counts;
  size_t begin = 0;
  for (size_t peer = 0; peer < count; ++peer) counts.push_back(peer == 0 ? 4 : 3);
  for (int peer = 0; peer < rank; ++peer) begin += counts[size_t(peer)];
  std::vector<int32_t> own(counts[size_t(rank)]);
  expect_ok(
      group.run(calls::reduce_scatter(numbers(std::span<const int32_t>(whole)), numbers(std::span(own)))));
  for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i], sum_at(begin + i));

  std::vector<int32_t> gathered(whole.size());
  expect_ok(group.run(
      calls::all_gather(numbers(std::span<const int32_t>(own)), numbers(std::span(gathered)), counts)));
  for (size_t i = 0; i < gathered.size(); ++i) EXPECT_EQ(gathered[i], sum_at(i));

  const int root = ranks / 2;
  std::vector<int32_t> total(rank == root ? whole.size() : 0);
  expect_ok(
      group.run(calls::reduce(numbers(std::span<const int32_t>(whole)), numbers(std::span(total)), root)));
  for (size_t i = 0; i < total.size(); ++i) EXPECT_EQ(total[i], sum_at(i));

  std::vector<int32_t> collected(rank == root ? whole.size() : 0);
  expect_ok(group.run(
      calls::gather(numbers(std::span<const int32_t>(own)), numbers(std::span(collected)), root, counts)));
  EXPECT_TRUE(rank != root || collected == gathered);
  std::vector<int32_t> scattered(own.size());
  expect_ok(group.run(calls::scatter(numbers(std::span<const int32_t>(collected)),
                                     numbers(std::span(scattered)), root, counts)));
  EXPECT_EQ(scattered, own);

  std::vector<int32_t> mine, theirs(count);
  for (int peer = 0; peer < ranks; ++peer) mine.push_back(rank * 100 + peer);
  expect_ok(
      group.run(calls::all_to_all(numbers(std::span<const int32_t>(mine)), numbers(std::span(theirs)))));
  for (int peer = 0; peer < ranks; ++peer) EXPECT_EQ(theirs[size_t(peer)], peer * 100 + rank);

  if (ranks > 1 && rank < 2) {
    std::vector<float> message(300'000, float(rank));
    if (rank == 0) expect_ok(group.send(1, numbers(std::span<const float>(message)), "activations"));
    if (rank == 1) expect_ok(group.receive(0, numbers(std::span(message)), "activations"));
    EXPECT_EQ(message, std::vector<float>(300'000, 0.0f));
  }
  expect_ok(group.barrier());
}

TEST(Group, every_operation_in_memory) {
  for (const int ranks : {1, 2, 3, 5}) {
    in_memory(ranks, play_sums);
    in_memory(ranks, play_everything);
  }
}

TEST(Group, every_operation_over_tcp) {
  for (const int ranks : {1, 2, 3, 5}) over(Way::tcp, ranks, play_everything);
  for (const int ranks : {2, 3}) over(Way::tcp, ranks, play_sums);
}

TEST(Group, every_operation_through_shared_memory) {
  for (const int ranks : {1, 2, 3, 5}) over(Way::shared, ranks, play_everything);
  for (const int ranks : {2, 3, 5}) over(Way::shared, ranks, play_sums);
}

TEST(Group, every_plan_over_every_transport) {
  for (const char* plan : {"one_shot", "direct", "ring", "halving_doubling", "tree"}) {
    const std::string plans = std::string("allreduce=") + plan + ":0-";
    for (const Way way : {Way::tcp, Way::shared})
      over(
          way, 3, [](Group& group) { play_sums_up_to(group, 20'001); }, plans);
  }
}

TEST(Group, ranks_on_one_machine_find_each_other) {
  over(Way::shared, 3, [](Group& group) { EXPECT_EQ(group.hosts(), (std::vector<int>{0, 0, 0})); });
  over(Way::tcp, 3, [](Group& group) { EXPECT_EQ(group.hosts(), (std::vector<int>{0, 1, 2})); });
}

TEST(Group, all_ranks_measure_the_same_table) {
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

TEST(Group, registered_memory_sums_like_any_other) {
  over(Way::shared, 3, [](Group& group) {
    for (const size_t elements : {size_t(100), size_t(200'000)}) {
      const auto inputs = awkward_inputs(Type::f32, group.size(), elements);
      const Bytes expected = expected_sum(group, Type::f32, Reduction::sum, inputs);
      const auto memory = group.allocate(elements * sizeof(float));
      ASSERT_TRUE(memory) << memory.error().message;
      for (int i = 0; i < 3; ++i) {
        std::copy(inputs[size_t(group.rank())].begin(), inputs[size_t(group.rank())].end(), memory->begin());
        expect_ok(group.run(calls::allreduce(Numbers{memory->data(), elements, Type::f32})));
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory->begin()));
      }
      expect_ok(group.barrier());
      group.free(*memory);
    }
  });
}

TEST(Group, operations_can_be_started_and_waited_for) {
  const auto play = [](Group& group) {
    std::vector<std::vector<float>> buckets(20, std::vector<float>(5000, 1.0f));
    std::vector<Handle> handles;
    for (auto& bucket : buckets)
      handles.push_back(group.start(calls::allreduce(numbers(std::span(bucket)), {.name = "bucket"})));
    // A call that does not wait in line takes its turn all the same.
    std::vector<float> more(10, 2.0f);
    expect_ok(group.allreduce(more));
    EXPECT_EQ(more[0], 2.0f * float(group.size()));
    for (Handle& handle : handles) expect_ok(handle.wait());
    for (const auto& bucket : buckets) EXPECT_EQ(bucket, std::vector<float>(5000, float(group.size())));
    EXPECT_GE(group.counters().operations, 21u);
  };
  in_memory(3, play);
  over(Way::shared, 3, play);
}

TEST(Group, parts_of_a_group_work_at_the_same_time_as_the_whole) {
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
  in_memory(4, play);
  over(Way::shared, 5, play);
  over(Way::tcp, 4, play);
}

TEST(Group, arguments_that_cannot_be_right_are_refused_before_anything_is_sent) {
  in_memory(2, [](Group& group) {
    std::vector<float> three(3), two(2);
    const auto refused = [&](const Call& call, const char* why) {
      const auto result = group.run(call);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, Kind::invalid);
      EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    };
    const auto in = numbers(std::span<const float>(three));
    const auto out = numbers(std::span(two));
    refused(calls::allreduce(in, out), "2 elements where 3");
    refused(calls::broadcast(out, 2), "no rank 2");
    refused(calls::reduce_scatter(in, out, {}, {1, 1}), "3 elements where 2");
    refused(calls::reduce_scatter(in, out, {}, {3}), "one count for each rank");
    refused(calls::all_gather(in, out), "2 elements where 6");
    refused(calls::all_to_all(in, numbers(std::span(three))), "divide");
    bool truth[2] = {true, false};
    refused(calls::allreduce(Numbers{truth, 2, Type::boolean}, {.reduction = Reduction::average}), "average");
    expect_ok(group.barrier());  // the group is none the worse
  });
}

TEST(Group, the_timeline_names_operations_and_plans) {
  auto groups = join_in_memory(1, {.deterministic = true, .timeline = true});
  std::vector<float> values(100);
  expect_ok(groups[0]->run(calls::allreduce(numbers(std::span(values)), {.name = "layer \"1\""})));
  const std::string timeline = groups[0]->timeline();
  EXPECT_NE(timeline.find("allreduce of layer \\\"1\\\""), std::string::npos) << timeline;
  EXPECT_NE(timeline.find("\"bytes\":400"), std::string::npos) << timeline;
}

TEST(Group, nobody_leaves_a_barrier_before_all_came) {
  std::atomic<int> came = 0;
  over_tcp(4, [&](Group& group) {
    ++came;
    expect_ok(group.barrier());
    EXPECT_EQ(came, 4);
  });
}

TEST(Group, a_rank_may_leave_when_it_is_done) {
  // Ranks end at different times; the destructor's goodbye is no death.
  over_tcp(3, [](Group& group) {
    std::vector<float> values(1000, 1.0f);
    for (int i = 0; i < 20; ++i) expect_ok(group.allreduce(values));
  });
}

TEST(Group, ranks_in_different_operations_find_out) {
  over_tcp(2, [](Group& group) {
    std::vector<float> values(4, 1.0f);
    const auto result =
        group.rank() == 0 ? group.allreduce(values) : group.allreduce(values, Reduction::maximum);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("same order"), std::string::npos) << result.error().message;
  });
}

TEST(Group, a_rank_that_gives_up_says_why) {
  const auto play = [](Group& group) {
    Result<void> result = group.barrier();  // or it would be heard while others still join
    if (group.rank() == 1) return group.abandon("the disk is on fire");
    std::vector<float> values(1000, 1.0f);
    if (result) result = group.allreduce(values);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("rank 1"), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find("the disk is on fire"), std::string::npos)
        << result.error().message;
  };
  for (const Way way : {Way::tcp, Way::shared}) over(way, 3, play);
  in_memory(3, play);
}

TEST(Group, a_killed_rank_ends_the_others_with_its_name) {
  constexpr int ranks = 4;
  constexpr int victim = 2;
  const auto all = endpoints(ranks);
  // The victim is a process, so that it dies as processes die: in the middle of a sum, without a word.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto group = join_over_tcp(options(all, victim));
    if (!group) _exit(1);
    std::vector<float> values(100000, 1.0f);
    for (int step = 0; step < 3; ++step) {
      if (!(*group)->allreduce(values)) _exit(2);
    }
    raise(SIGKILL);
    _exit(3);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == victim) continue;
    threads.emplace_back([&, rank] {
      auto group = join_over_tcp(options(all, rank));
      ASSERT_TRUE(group) << group.error().message;
      std::vector<float> values(100000, 1.0f);
      // The victim takes part in three sums; its death may be noticed at the end of the third.
      Result<void> result;
      for (int step = 0; step < 4 && result; ++step) result = (*group)->allreduce(values);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, Kind::unavailable);
      EXPECT_NE(result.error().message.find("rank 2 ("), std::string::npos) << result.error().message;
      EXPECT_NE(result.error().message.find("gone"), std::string::npos) << result.error().message;
      // The first error is the last word.
      EXPECT_FALSE((*group)->barrier());
    });
  }
  for (auto& thread : threads) thread.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

// Dies without a word when the time is over, wherever it is then: SIGALRM kills who does not handle it.
[[noreturn]] void work_until_death(const TcpOptions& options, int microseconds) {
  auto group = join_over_tcp(options);
  if (!group) _exit(1);
  const itimerval until{{0, 0}, {0, microseconds}};
  setitimer(ITIMER_REAL, &until, nullptr);
  std::vector<float> values(50'000, 1.0f);
  for (;;) {
    if (!(*group)->allreduce(values) || !(*group)->barrier()) _exit(2);
  }
}

TEST(Group, a_rank_that_dies_anywhere_ends_all_others_with_its_name_and_the_tensors) {
  constexpr int ranks = 3;
  for (const Way way : {Way::tcp, Way::shared}) {
    for (int trial = 0; trial < 8; ++trial) {
      const int victim = trial % ranks;
      const auto all = endpoints(ranks);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) work_until_death(options(all, victim, way), 1 + trial * 700);
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == victim) continue;
        threads.emplace_back([&, rank] {
          auto group = join_over_tcp(options(all, rank, way));
          std::string why;
          if (group) {
            std::vector<float> values(50'000, 1.0f);
            for (;;) {
              auto result = (*group)->run(calls::allreduce(numbers(std::span(values)), {.name = "layer1"}));
              if (result) result = (*group)->barrier();
              if (result) continue;
              why = result.error().message;
              EXPECT_EQ(result.error().kind, Kind::unavailable) << why;
              EXPECT_TRUE(why.starts_with("allreduce of layer1: ") || why.starts_with("barrier: ")) << why;
              break;
            }
          } else {
            why = group.error().message;  // it died while the others were still joining
          }
          EXPECT_NE(why.find("rank " + std::to_string(victim) + " ("), std::string::npos) << why;
        });
      }
      for (auto& thread : threads) thread.join();
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status)) << status;
    }
  }
}

TEST(Group, nothing_is_left_in_the_file_system_by_shared_memory) {
  const auto files = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
      names.insert(entry.path().filename());
    return names;
  };
  over(Way::shared, 2, [&](Group& group) {
    const auto memory = group.allocate(1 << 20);
    ASSERT_TRUE(memory);
    for (const std::string& name : files()) EXPECT_EQ(name.find("trainyard"), std::string::npos) << name;
    group.free(*memory);
  });
}

TEST(Group, a_silent_rank_is_given_up) {
  for (const Way way : {Way::tcp, Way::shared}) {
    const auto all = endpoints(2);
    std::atomic<bool> given_up = false;
    std::thread silent([&] {
      auto group = join_over_tcp(options(all, 1, way));
      ASSERT_TRUE(group) << group.error().message;
      while (!given_up) std::this_thread::yield();
    });
    auto patient = options(all, 0, way);
    patient.silence_max = 200ms;
    auto group = join_over_tcp(patient);
    ASSERT_TRUE(group) << group.error().message;
    std::thread onlooker([&] {
      // What a stall report says while it lasts.
      std::string said;
      while (!given_up && said.empty()) said = (*group)->under_way();
      EXPECT_TRUE(given_up || said.find("barrier") != std::string::npos) << said;
    });
    const auto result = (*group)->barrier();
    given_up = true;
    silent.join();
    onlooker.join();
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("nothing from rank 1"), std::string::npos)
        << result.error().message;
  }
}

TEST(Group, a_wait_can_be_cancelled) {
  const auto all = endpoints(2);
  auto cancelled_options = options(all, 0);
  cancelled_options.cancelled = [] { return true; };
  const auto group = join_over_tcp(cancelled_options);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().kind, Kind::cancelled);
}

TEST(Rendezvous, a_rank_that_never_comes_is_named) {
  const auto all = endpoints(3);
  for (const int rank : {0, 1}) {
    auto hasty = options(all, rank);
    hasty.join_deadline = 200ms;
    const auto group = join_over_tcp(hasty);
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().kind, Kind::unavailable);
    EXPECT_NE(group.error().message.find(rank == 0 ? "rank 1 (" : "rank 0 ("), std::string::npos)
        << group.error().message;
  }
}

TEST(Rendezvous, a_rank_of_another_job_is_refused) {
  const auto all = endpoints(2);
  std::thread first([&] {
    const auto group = join_over_tcp(options(all, 0));
    EXPECT_TRUE(group) << group.error().message;
  });
  auto foreign = options(all, 1);
  foreign.shared_value = "another job";
  const auto refused = join_over_tcp(foreign);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::conflict);
  EXPECT_NE(refused.error().message.find("another job"), std::string::npos);
  // The stranger has not hurt the one that waits.
  EXPECT_TRUE(join_over_tcp(options(all, 1)));
  first.join();
}

TEST(Rendezvous, strangers_at_the_port_do_no_harm) {
  const auto all = endpoints(2);
  std::thread first([&] {
    const auto group = join_over_tcp(options(all, 0));
    EXPECT_TRUE(group) << group.error().message;
  });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(all[0].port);
  inet_pton(AF_INET, all[0].host.c_str(), &address.sin_addr);
  std::vector<int> strangers;
  for (const std::string_view words : {"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", ""}) {
    for (int tries = 0; tries < 100000; ++tries) {
      const int stranger = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
        (void)!write(stranger, words.data(), words.size());
        strangers.push_back(stranger);
        break;
      }
      close(stranger);
    }
  }
  EXPECT_EQ(strangers.size(), 2u);
  EXPECT_TRUE(join_over_tcp(options(all, 1)));
  first.join();
  for (const int stranger : strangers) close(stranger);
}

TEST(Rendezvous, refuses_options_that_cannot_be_right) {
  EXPECT_EQ(join_over_tcp({}).error().kind, Kind::invalid);
  EXPECT_EQ(join_over_tcp({.endpoints = {{"localhost", 1}}, .rank = 1}).error().kind, Kind::invalid);
  EXPECT_EQ(
      join_over_tcp({.endpoints = {{"localhost", 1}}, .rank = 0, .shared_value = std::string(1000, 'x')})
          .error()
          .kind,
      Kind::invalid);
}

}  // namespace
}  // namespace trainyard::collectives
