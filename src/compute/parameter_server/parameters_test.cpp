// Tests parameter servers over real groups: threads that communicate through memory or sockets, and
// processes that die.
#include "parameter_server/parameters.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "collectives/testing/groups.hpp"

namespace trainyard::parameter_server {
namespace {

using collectives::testing::LinkKind;
using collectives::testing::run_ranks;
using collectives::testing::run_ranks_in_memory;

bool is_server(const Options& options, int rank) {
  return std::find(options.servers.begin(), options.servers.end(), rank) != options.servers.end();
}

float slope(int rank, uint64_t round, size_t i) {
  return float((i * 31 + size_t(rank) * 17 + round * 7) % 1001) * 0.37f - 180.1f;
}

// Runs over every transport.
void over_all(int ranks, const std::function<void(collectives::Group&)>& run_rank) {
  run_ranks_in_memory(ranks, run_rank);
  run_ranks(LinkKind::tcp, ranks, run_rank);
  run_ranks(LinkKind::shared, ranks, run_rank);
}

TEST(Parameters, SynchronousWorkersMatchAnAllreduceBitForBit) {
  // Three slices, over two servers.
  constexpr size_t numbers = 2 * kSliceNumbersMax + 5;
  const Options options{
      {{"weights", numbers, 1, {Rule::Kind::momentum, 0.1f, 0.9f}}, {"rows", 100, 7, {}}},
      {1, 3},
      {}};
  over_all(5, [&](collectives::Group& group) {
    auto workers = group.split(is_server(options, group.rank()) ? -1 : 0,
                               {.deterministic = true, .plans = "allreduce=one_shot:0-"});
    ASSERT_TRUE(workers) << workers.error().message;
    if (is_server(options, group.rank())) {
      const auto served = serve(group, options);
      EXPECT_TRUE(served) << served.error().message;
      return;
    }
    auto worker = Worker::join(group, options);
    ASSERT_TRUE(worker) << worker.error().message;
    std::vector<float> initial(numbers, 0.5f);
    if ((*workers)->rank() == 0) {
      ASSERT_TRUE((*worker)->assign(0, initial));
    }
    ASSERT_TRUE((*worker)->end_round());
    std::vector<float> values(numbers);
    std::vector<float> velocity(numbers);
    for (uint64_t round = 1; round <= 3; ++round) {
      std::vector<float> gradient(numbers);
      for (size_t i = 0; i < numbers; ++i) gradient[i] = slope(group.rank(), round, i);
      ASSERT_TRUE((*worker)->push(0, gradient));
      const auto ended = (*worker)->end_round();
      ASSERT_TRUE(ended) << ended.error().message;
      ASSERT_TRUE((*workers)->allreduce(gradient));
      update(options.tables[0].rule, initial, velocity, gradient);
      ASSERT_TRUE((*worker)->pull(0, values));
      EXPECT_EQ(values, initial) << "round " << round;
    }
    EXPECT_TRUE((*worker)->leave());
  });
}

TEST(Parameters, PushesAndPullsNamedRowsInAnyOrder) {
  const Options options{
      {{"embedding", 1'000'000, 8, {Rule::Kind::sum}}}, {0, 1}, {Consistency::Kind::bounded, 2}};
  over_all(4, [&](collectives::Group& group) {
    if (is_server(options, group.rank())) {
      EXPECT_TRUE(serve(group, options));
      return;
    }
    auto worker = Worker::join(group, options);
    ASSERT_TRUE(worker) << worker.error().message;
    // Rows that no other worker pushes, from all over the table, one of them twice.
    const auto own = uint64_t(group.rank());
    const std::vector<uint64_t> rows = {999'000 + own, own, 500'000 + own, 250'000 + own, own};
    for (uint64_t round = 0; round < 5; ++round) {
      std::vector<float> gradient(rows.size() * 8);
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = float(i / 8 + 1);
      ASSERT_TRUE((*worker)->push(0, rows, gradient));
      std::vector<float> values(gradient.size());
      const auto pulled = (*worker)->pull(0, rows, values);
      ASSERT_TRUE(pulled) << pulled.error().message;
      const float rounds = float(round + 1);
      for (size_t column = 0; column < 8; ++column) {
        EXPECT_EQ(values[0 * 8 + column], rounds * 1);
        EXPECT_EQ(values[1 * 8 + column], rounds * (2 + 5));
        EXPECT_EQ(values[2 * 8 + column], rounds * 3);
        EXPECT_EQ(values[3 * 8 + column], rounds * 4);
        EXPECT_EQ(values[4 * 8 + column], rounds * (2 + 5));
      }
      ASSERT_TRUE((*worker)->end_round());
    }
    const std::vector<float> one(8);
    EXPECT_EQ((*worker)->push(0, std::vector<uint64_t>{1'000'000}, one).error().kind,
              Kind::invalid);
    EXPECT_EQ((*worker)->push(0, std::vector<uint64_t>{1, 2}, one).error().kind, Kind::invalid);
    EXPECT_EQ((*worker)->push(1, one).error().kind, Kind::invalid);
    EXPECT_TRUE((*worker)->leave());
  });
}

TEST(Parameters, AllRanksFailIfTheirOptionsDiffer) {
  run_ranks_in_memory(3, [](collectives::Group& group) {
    const Options options{{{"weights", 10u + (group.rank() == 2 ? 1 : 0), 1, {}}}, {0}, {}};
    const auto result = group.rank() == 0 ? serve(group, options) : [&]() -> Result<void> {
      TRY(Worker::join(group, options));
      return ok();
    }();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, Kind::invalid);
    EXPECT_NE(result.error().message.find("different tables"), std::string::npos)
        << result.error().message;
  });
  run_ranks_in_memory(2, [](collectives::Group& group) {
    for (const std::vector<int>& servers : {std::vector<int>{}, {0, 1}, {0, 0}, {2}, {-1}})
      EXPECT_EQ(serve(group, {{{"weights", 10, 1, {}}}, servers, {}}).error().kind, Kind::invalid);
  });
}

// Kills rank `killed`, a process, within a round. Every other rank must fail in time and name it.
void kill_rank(int killed, LinkKind links) {
  const Options options{{{"weights", 1000, 1, {}}}, {0}, {}};
  constexpr int ranks = 3;
  const auto all = collectives::testing::endpoints(ranks);
  const auto run_rank = [&](collectives::Group& group, bool dies) -> Result<void> {
    if (is_server(options, group.rank())) {
      if (dies) alarm(1);  // at any point of its work
      return serve(group, options);
    }
    auto worker = TRY(Worker::join(group, options));
    std::vector<float> values(1000, 1.0f);
    for (int round = 0;; ++round) {
      TRY(worker->push(0, values));
      if (dies && round == 3) raise(SIGKILL);
      TRY(worker->end_round());
      TRY(worker->pull(0, values));
    }
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto group = collectives::join_over_tcp(collectives::testing::options(all, killed, links));
    if (!group) _exit(1);
    (void)run_rank(**group, true);
    _exit(2);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == killed) continue;
    threads.emplace_back([&, rank] {
      auto group = collectives::join_over_tcp(collectives::testing::options(all, rank, links));
      // The killed rank may die while others still join.
      const auto result = group ? run_rank(**group, false) : Result<void>(group.error());
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().kind, Kind::unavailable) << result.error().message;
      EXPECT_NE(result.error().message.find("rank " + std::to_string(killed) + " ("),
                std::string::npos)
          << result.error().message;
    });
  }
  for (auto& thread : threads) thread.join();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

TEST(Parameters, AllOtherRanksNameADeadWorker) {
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared}) kill_rank(2, links);
}
TEST(Parameters, AllWorkersNameADeadServer) {
  for (const LinkKind links : {LinkKind::tcp, LinkKind::shared}) kill_rank(0, links);
}

}  // namespace
}  // namespace trainyard::parameter_server
