// Runs servers and workers in steps on one thread; messages arrive in every order that the links
// allow.
#include "parameter_server/server_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>

#include "base/random.hpp"

namespace trainyard::parameter_server {
namespace {

using Kind = Consistency::Kind;

// Each table has one slice, since tables with several slices are large.
std::vector<Table> tables(Rule rule) {
  return {{"dense", 12, 1, rule}, {"rows", 6, 3, rule}, {"more", 5, 2, rule}, {"one", 1, 1, rule}};
}

// Returns the gradient that a worker pushes in a round; equal arguments give equal gradients.
std::vector<float> gradient(uint32_t worker, uint64_t round, uint32_t table, size_t numbers) {
  SeededRandom random(worker * 1000003 + round * 101 + table);
  std::vector<float> values;
  for (size_t i = 0; i < numbers; ++i)
    values.push_back((float(random.below(2001)) - 1000.0f) * (random.chance(3) ? 1e-4f : 1.0f));
  return values;
}

// Returns the rows of table 1 that a worker pushes in a round.
std::vector<uint64_t> touched(uint32_t worker, uint64_t round) {
  SeededRandom random(worker * 7919 + round);
  std::vector<uint64_t> rows;
  for (uint64_t row = 0; row < 6; ++row) {
    if (random.chance(2)) rows.push_back(row);
  }
  return rows;
}

// Workers, servers and the links between them.
class SimulatedServers {
 public:
  SimulatedServers(Placement placement, uint32_t workers, Consistency consistency, uint64_t rounds,
                   uint64_t seed)
      : placement_(std::move(placement)),
        consistency_(consistency),
        rounds_(rounds),
        random_(seed) {
    for (uint32_t server = 0; server < placement_.servers(); ++server)
      servers_.push_back(std::make_unique<ServerState>(placement_, server, workers, consistency));
    workers_.resize(workers);
    to_server_.resize(workers * placement_.servers());
    to_worker_.resize(workers * placement_.servers());
  }

  // Runs until every worker has left.
  void run() {
    constexpr int steps_max = 1'000'000;
    for (int step = 0; step < steps_max; ++step) {
      std::vector<std::function<void()>> actions;
      for (uint32_t worker = 0; worker < workers_.size(); ++worker) {
        if (workers_[worker].waits_for == 0 && !workers_[worker].left)
          actions.push_back([this, worker] { act(worker); });
        for (uint32_t server = 0; server < placement_.servers(); ++server) {
          if (!to_server_[link(worker, server)].empty())
            actions.push_back([this, worker, server] { deliver(worker, server); });
          if (!to_worker_[link(worker, server)].empty())
            actions.push_back([this, worker, server] { receive(worker, server); });
        }
      }
      if (actions.empty()) break;
      actions[random_.below(actions.size())]();
    }
    for (const auto& server : servers_) EXPECT_TRUE(server->is_finished());
  }

  // Called once for each round of each worker; by default does nothing.
  std::function<void(SimulatedServers&, uint32_t worker, uint64_t round)> in_round =
      [](SimulatedServers&, uint32_t, uint64_t) {};
  std::function<void(uint32_t worker, uint64_t round, const std::vector<float>& values)> pulled =
      [](uint32_t, uint64_t, const std::vector<float>&) {};

  void push(uint32_t worker, uint32_t table, const std::vector<float>& values) {
    const uint32_t width = placement_.tables()[table].width;
    for (const Slice& slice : placement_.of_table(table)) {
      const auto part =
          std::span(values).subspan(slice.begin * width, (slice.end - slice.begin) * width);
      send(worker, slice.server,
           Push{{table, slice.begin, slice.end - slice.begin, {}}, bytes_of(part)});
    }
  }
  void push_rows(uint32_t worker, uint32_t table, const std::vector<uint64_t>& rows,
                 const std::vector<float>& values) {
    const uint32_t width = placement_.tables()[table].width;
    for (size_t i = 0; i < rows.size(); ++i) {
      send(worker, placement_.slice_of(table, rows[i]).server,
           Push{{table, 0, 0, {rows[i]}}, bytes_of(std::span(values).subspan(i * width, width))});
    }
  }
  void pull(uint32_t worker, uint32_t table) {
    for (const Slice& slice : placement_.of_table(table)) {
      send(worker, slice.server, Pull{{table, slice.begin, slice.end - slice.begin, {}}});
      ++workers_[worker].waits_for;
    }
  }
  // The current round of a worker, and the number of rounds that it has ended: one more while it
  // waits for the next.
  uint64_t round(uint32_t worker) const { return workers_[worker].round; }
  uint64_t ended(uint32_t worker) const { return workers_[worker].ended; }
  bool has_left(uint32_t worker) const { return workers_[worker].left; }
  uint32_t workers() const { return uint32_t(workers_.size()); }
  std::function<void()> after_each = [] {};

 private:
  struct SimulatedWorker {
    uint64_t round = 0;
    uint64_t ended = 0;
    size_t waits_for = 0;  // number of answers for which it waits
    bool in_round_done = false;
    bool left = false;
  };
  size_t link(uint32_t worker, uint32_t server) const {
    return worker * placement_.servers() + server;
  }

  void act(uint32_t worker) {
    SimulatedWorker& state = workers_[worker];
    if (state.round == rounds_) {
      for (uint32_t server = 0; server < placement_.servers(); ++server)
        send(worker, server, Leave{});
      state.left = true;
    } else if (!state.in_round_done) {
      state.in_round_done = true;
      in_round(*this, worker, state.round);
    } else {
      ++state.ended;
      for (uint32_t server = 0; server < placement_.servers(); ++server) {
        send(worker, server, Tick{state.round});
        ++state.waits_for;
      }
    }
    after_each();
  }
  void send(uint32_t worker, uint32_t server, const Request& request) {
    to_server_[link(worker, server)].push_back(encode(request));
  }
  void deliver(uint32_t worker, uint32_t server) {
    auto& queue = to_server_[link(worker, server)];
    auto request = decode_request(queue.front());
    queue.pop_front();
    ASSERT_TRUE(request) << request.error().message;
    for (Outgoing& each : servers_[server]->handle(worker, *std::move(request)))
      to_worker_[link(each.worker, server)].push_back(encode(each.answer));
  }
  void receive(uint32_t worker, uint32_t server) {
    auto& queue = to_worker_[link(worker, server)];
    const auto answer = decode_answer(queue.front());
    queue.pop_front();
    ASSERT_TRUE(answer) << answer.error().message;
    SimulatedWorker& state = workers_[worker];
    ASSERT_GT(state.waits_for, 0u);
    --state.waits_for;
    if (const auto* found = std::get_if<Values>(&*answer)) {
      std::vector<float> values(found->values.size() / sizeof(float));
      read_values(found->values, values);
      pulled(worker, state.round, values);
    } else if (const auto* proceed = std::get_if<Proceed>(&*answer)) {
      EXPECT_EQ(proceed->round, state.round + 1);
      if (state.waits_for == 0) {
        ++state.round;
        state.in_round_done = false;
        after_each();
      }
    } else {
      FAIL() << std::get<Refused>(*answer).why;
    }
  }

  const Placement placement_;
  const Consistency consistency_;
  const uint64_t rounds_;
  SeededRandom random_;
  std::vector<std::unique_ptr<ServerState>> servers_;
  std::vector<SimulatedWorker> workers_;
  std::vector<std::deque<std::string>> to_server_;
  std::vector<std::deque<std::string>> to_worker_;
};

// Returns the values of every worker after `rounds` rounds of an allreduce ((a + b) + c) .. and the
// same rule.
std::vector<float> by_allreduce(const Table& table, uint32_t index, uint32_t workers,
                                uint64_t rounds) {
  const size_t numbers = table.rows * table.width;
  std::vector<float> values(numbers);
  std::vector<float> state(has_state(table.rule.kind) ? numbers : 0);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<float> sum = gradient(0, round, index, numbers);
    for (uint32_t worker = 1; worker < workers; ++worker) {
      const auto theirs = gradient(worker, round, index, numbers);
      for (size_t i = 0; i < numbers; ++i) sum[i] += theirs[i];
    }
    update(table.rule, values, state, sum);
  }
  return values;
}

// Does the same for rows that only some workers push; a row without a push keeps its values and
// state.
std::vector<float> by_rows(const Table& table, uint32_t index, uint32_t workers, uint64_t rounds) {
  std::vector<float> values(table.rows * table.width);
  std::vector<float> state(has_state(table.rule.kind) ? values.size() : 0);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t row = 0; row < table.rows; ++row) {
      std::vector<float> sum;
      for (uint32_t worker = 0; worker < workers; ++worker) {
        const auto rows = touched(worker, round);
        const auto found = std::find(rows.begin(), rows.end(), row);
        if (found == rows.end()) continue;
        const auto all = gradient(worker, round, index, rows.size() * table.width);
        const auto mine =
            std::span(all).subspan(size_t(found - rows.begin()) * table.width, table.width);
        if (sum.empty()) {
          sum.assign(mine.begin(), mine.end());
        } else {
          for (size_t i = 0; i < sum.size(); ++i) sum[i] += mine[i];
        }
      }
      if (sum.empty()) continue;
      const auto at = size_t(row * table.width);
      update(table.rule, std::span(values).subspan(at, table.width),
             state.empty() ? std::span<float>() : std::span(state).subspan(at, table.width), sum);
    }
  }
  return values;
}

TEST(ServerState, SynchronousRoundsMatchAnAllreduceAndTheRuleBitForBit) {
  constexpr uint64_t rounds = 4;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const uint32_t workers = 1 + uint32_t(seed % 4);
    const uint32_t servers = 1 + uint32_t(seed / 4 % 3);
    const Rule rule{Rule::Kind(seed % 4), 0.1f, 0.5f};
    const auto all = tables(rule);
    SimulatedServers world(*Placement::make(all, servers), workers, {Kind::synchronous, 0}, rounds,
                           seed);
    world.in_round = [&](SimulatedServers& here, uint32_t worker, uint64_t round) {
      here.pull(worker, 0);
      here.push(worker, 0, gradient(worker, round, 0, 12));
      const auto rows = touched(worker, round);
      here.push_rows(worker, 1, rows, gradient(worker, round, 1, rows.size() * 3));
      here.pull(worker, 1);  // does not see this round's gradients
    };
    world.pulled = [&](uint32_t, uint64_t round, const std::vector<float>& values) {
      const auto expected = values.size() == 12 ? by_allreduce(all[0], 0, workers, round)
                                                : by_rows(all[1], 1, workers, round);
      EXPECT_EQ(values, expected) << "seed " << seed << ", round " << round;
    };
    world.run();
  }
}

TEST(ServerState, BoundsHowFarWorkersAreAheadAndPullsSeeAllOlderPushes) {
  constexpr uint64_t rounds = 12;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const uint32_t workers = 2 + uint32_t(seed % 3);
    const uint64_t staleness = seed % 4;
    // One row per worker, in which it counts its rounds.
    const std::vector<Table> counts = {{"counts", workers, 1, {Rule::Kind::sum}}};
    SimulatedServers world(*Placement::make(counts, 2), workers, {Kind::bounded, staleness}, rounds,
                           seed);
    uint64_t furthest = 0;
    world.in_round = [&](SimulatedServers& here, uint32_t worker, uint64_t) {
      here.pull(worker, 0);
      here.push_rows(worker, 0, {worker}, {1});
    };
    world.after_each = [&] {
      uint64_t slowest = rounds;
      uint64_t fastest = 0;
      for (uint32_t worker = 0; worker < workers; ++worker) {
        if (!world.has_left(worker)) slowest = std::min(slowest, world.ended(worker));
        fastest = std::max(fastest, world.round(worker));
      }
      furthest = std::max(furthest, fastest - std::min(slowest, fastest));
      ASSERT_LE(fastest, slowest + staleness) << "seed " << seed;
    };
    world.pulled = [&](uint32_t worker, uint64_t round, const std::vector<float>& values) {
      ASSERT_EQ(values.size(), workers);
      EXPECT_EQ(values[worker], float(round)) << "a worker always sees its own pushes";
      for (const float each : values) {
        EXPECT_GE(each + float(staleness), float(round)) << "seed " << seed;
        EXPECT_LE(each, float(round + staleness + 1)) << "seed " << seed;
      }
    };
    world.run();
    EXPECT_TRUE(staleness == 0 || furthest > 0) << "seed " << seed;
  }
}

TEST(ServerState, AsynchronousWorkersNeverWaitAndLoseNothing) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    constexpr uint32_t workers = 3;
    constexpr uint64_t rounds = 6;
    const std::vector<Table> counts = {{"counts", workers, 1, {Rule::Kind::sum}}};
    SimulatedServers world(*Placement::make(counts, 2), workers, {Kind::asynchronous, 0}, rounds,
                           seed);
    world.in_round = [&](SimulatedServers& here, uint32_t worker, uint64_t) {
      here.push_rows(worker, 0, {worker}, {1});
      here.pull(worker, 0);
    };
    world.pulled = [&](uint32_t worker, uint64_t round, const std::vector<float>& values) {
      EXPECT_EQ(values[worker], float(round + 1));
    };
    world.run();
  }
}

TEST(ServerState, AddsUpDenseAndSparsePushesOfARound) {
  const auto placement = Placement::make({{"rows", 3, 2, {Rule::Kind::sum}}}, 1);
  ServerState server(*placement, 0, 2, {Kind::synchronous, 0});
  const auto push = [&](uint32_t worker, Rows rows, std::vector<float> values) {
    EXPECT_TRUE(server.handle(worker, Push{std::move(rows), bytes_of(values)}).empty());
  };
  push(0, {0, 0, 3, {}}, {1, 1, 1, 1, 1, 1});
  push(0, {0, 0, 3, {}}, {1, 0, 0, 0, 0, 0});
  push(1, {0, 0, 0, {2, 2}}, {10, 20, 1, 2});
  push(1, {0, 1, 2, {}}, {100, 100, 100, 100});
  EXPECT_TRUE(server.handle(0, Tick{0}).empty());
  EXPECT_EQ(server.handle(1, Tick{0}).size(), 2u);
  const auto answers = server.handle(0, Pull{{0, 0, 3, {}}});
  std::vector<float> values(6);
  read_values(std::get<Values>(answers[0].answer).values, values);
  EXPECT_EQ(values, (std::vector<float>{2, 1, 101, 101, 112, 123}));
}

TEST(ServerState, DropsPushesOfAWorkerThatLeavesWithinARoundAndDelaysNoOther) {
  const auto placement = Placement::make({{"one", 1, 1, {Rule::Kind::sum}}}, 1);
  ServerState server(*placement, 0, 2, {Kind::synchronous, 0});
  const std::vector<float> seven = {7};
  const std::vector<float> two = {2};
  (void)server.handle(0, Push{{0, 0, 1, {}}, bytes_of(two)});
  (void)server.handle(1, Push{{0, 0, 1, {}}, bytes_of(seven)});
  EXPECT_TRUE(server.handle(0, Tick{0}).empty());
  EXPECT_EQ(server.handle(1, Leave{}).size(), 1u);  // Proceed for the other worker
  const auto answers = server.handle(0, Pull{{0, 0, 1, {}}});
  EXPECT_EQ(std::get<Values>(answers[0].answer).values, bytes_of(two));
  EXPECT_FALSE(server.is_finished());
  (void)server.handle(0, Leave{});
  EXPECT_TRUE(server.is_finished());
}

TEST(ServerState, RejectsInvalidRequestsWithTheReasonAndStaysUnchanged) {
  const auto placement = Placement::make({{"rows", 4, 2, {}}, {"other", 1, 1, {}}}, 1);
  ServerState server(*placement, 0, 2, {Kind::synchronous, 0});
  const std::string row = bytes_of(std::vector<float>(2));
  const struct {
    Request request;
    const char* why;
  } rows[] = {{Pull{{7, 0, 1, {}}}, "unknown table 7"},
              {Pull{{0, 4, 1, {}}}, "row 4"},
              {Pull{{0, 3, 2, {}}}, "row 4"},
              {Pull{{0, 0, 0, {}}}, "selects no rows"},
              {Pull{{0, 0, 0, {1, 9}}}, "row 9"},
              {Pull{{0, 0, ~uint64_t{0}, {}}}, "exceed the maximum message size"},
              {Push{{0, 0, 2, {}}, row}, "8 bytes for 2 rows"},
              {Push{{0, 0, 0, {1}}, row + "x"}, "9 bytes for 1 row"},
              {Assign{{0, 0, ~uint64_t{0} / 8 + 1, {}}, row}, "bytes for"},
              {Tick{3}, "tick for round 3"}};
  for (const auto& each : rows) {
    const auto answers = server.handle(1, each.request);
    ASSERT_EQ(answers.size(), 1u) << each.why;
    ASSERT_TRUE(std::holds_alternative<Refused>(answers[0].answer)) << each.why;
    EXPECT_NE(std::get<Refused>(answers[0].answer).why.find(each.why), std::string::npos)
        << std::get<Refused>(answers[0].answer).why;
  }
  EXPECT_TRUE(server.handle(1, Tick{0}).empty());
  const auto answers =
      server.handle(1, Pull{{0, 0, 1, {}}});  // a request while the worker waits for the next round
  EXPECT_TRUE(std::holds_alternative<Refused>(answers[0].answer));
}

}  // namespace
}  // namespace trainyard::parameter_server
