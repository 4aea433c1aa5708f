// Whole groups: a thread for each rank, in memory and over TCP on loopback.
#include "collectives/group.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "base/random.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/reference.hpp"

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

TcpOptions options(const std::vector<Endpoint>& endpoints, int rank) {
  TcpOptions options;
  options.endpoints = endpoints;
  options.rank = rank;
  options.shared_value = "group_test";
  options.join_deadline = 60s;
  options.silence_max = 60s;
  return options;
}

// Plays every rank in a thread of its own, over TCP.
void over_tcp(int ranks, const std::function<void(Group&)>& play) {
  const auto all = endpoints(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = join_over_tcp(options(all, rank));
      ASSERT_TRUE(group) << group.error().message;
      play(**group);
    });
  }
  for (auto& thread : threads) thread.join();
}

void in_memory(int ranks, const std::function<void(Group&)>& play) {
  auto groups = join_in_memory(ranks);
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&] { play(*group); });
  for (auto& thread : threads) thread.join();
}

void expect_ok(const Result<void>& result) { EXPECT_TRUE(result) << result.error().message; }

std::vector<float> input(int rank, size_t elements) {
  SeededRandom random(uint64_t(rank) + 1);
  std::vector<float> values(elements);
  for (float& value : values) value = float(random.below(1000000)) / 7.0f;
  return values;
}

// Every operation, with sizes beyond a socket's buffer, several times over the same connections.
void play_everything(Group& group) {
  const int ranks = group.size();
  for (const size_t elements : {size_t(0), size_t(1), size_t(7), size_t(1) << 20}) {
    std::vector<std::vector<float>> inputs;
    for (int rank = 0; rank < ranks; ++rank) inputs.push_back(input(rank, elements));
    std::vector<float> values = inputs[size_t(group.rank())];
    expect_ok(group.allreduce(values));
    const auto expected = reference::allreduce_sum(
        inputs, [&](size_t element) { return plan::ring_first_rank(ranks, elements, element); });
    EXPECT_EQ(values, expected);
  }

  std::vector<double> precise{1.0 + 0x1.0p-40, double(group.rank())};
  expect_ok(group.allreduce(precise));
  EXPECT_EQ(precise,
            (std::vector<double>{double(ranks) * (1.0 + 0x1.0p-40), double(ranks * (ranks - 1) / 2)}));

  std::vector<float> extreme{float(group.rank()), -float(group.rank())};
  expect_ok(group.allreduce(extreme, Reduction::maximum));
  EXPECT_EQ(extreme, (std::vector<float>{float(ranks - 1), 0}));
  expect_ok(group.allreduce(extreme, Reduction::minimum));

  std::string text = group.rank() == ranks - 1 ? "from the last rank" : "..................";
  expect_ok(group.broadcast(std::as_writable_bytes(std::span(text)), ranks - 1));
  EXPECT_EQ(text, "from the last rank");

  const auto texts = group.all_gather(std::string(size_t(group.rank()), 'x'));
  ASSERT_TRUE(texts) << texts.error().message;
  for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ((*texts)[size_t(rank)], std::string(size_t(rank), 'x'));
  expect_ok(group.barrier());
}

TEST(Group, every_operation_in_memory) {
  for (int ranks = 1; ranks <= 5; ++ranks) in_memory(ranks, play_everything);
}

TEST(Group, every_operation_over_tcp) {
  for (int ranks = 1; ranks <= 5; ++ranks) over_tcp(ranks, play_everything);
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
    if (group.rank() == 1) return group.abandon("the disk is on fire");
    std::vector<float> values(1000, 1.0f);
    const auto result = group.allreduce(values);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("rank 1"), std::string::npos) << result.error().message;
    EXPECT_NE(result.error().message.find("the disk is on fire"), std::string::npos)
        << result.error().message;
  };
  over_tcp(3, play);
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

TEST(Group, a_silent_rank_is_given_up) {
  const auto all = endpoints(2);
  std::atomic<bool> given_up = false;
  std::thread silent([&] {
    auto group = join_over_tcp(options(all, 1));
    ASSERT_TRUE(group) << group.error().message;
    while (!given_up) std::this_thread::yield();
  });
  auto patient = options(all, 0);
  patient.silence_max = 200ms;
  auto group = join_over_tcp(patient);
  ASSERT_TRUE(group) << group.error().message;
  const auto result = (*group)->barrier();
  given_up = true;
  silent.join();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("nothing from rank 1"), std::string::npos) << result.error().message;
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
