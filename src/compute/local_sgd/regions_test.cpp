// Regions over loopback: threads where all live, processes where some die.
#include "local_sgd/regions.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "base/fnv.hpp"
#include "collectives/testing/groups.hpp"
#include "collectives/transport/tcp/frame.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"
#include "local_sgd/messages.hpp"

namespace trainyard::local_sgd {
namespace {

using collectives::testing::endpoints;

constexpr size_t parameters_count = 1000;

RegionOptions options(const std::vector<collectives::Endpoint>& leaders, int region) {
  RegionOptions options;
  options.leaders = leaders;
  options.region = region;
  options.shared_value = "regions_test";
  options.charter = "charter of " + std::to_string(region);
  options.join_deadline = 60s;
  options.round_timeout = 60s;
  return options;
}

// What a region learns by itself between two rounds: a pull towards values of its own.
void train(std::vector<float>& parameters, int region, uint64_t round) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const float aim = float((i * 7 + size_t(region) * 13 + round) % 17) / 16.0f;
    parameters[i] += 0.5f * (aim - parameters[i]);
  }
}

TEST(Regions, end_alike_and_send_what_the_formula_says) {
  constexpr uint64_t rounds = 5;
  for (int count = 1; count <= 4; ++count) {
    const auto leaders = endpoints(count);
    std::vector<std::vector<float>> learned(size_t(count), std::vector<float>(parameters_count, 1.0f));
    std::atomic<uint64_t> sent = 0;
    std::atomic<uint64_t> received = 0;
    std::vector<std::thread> threads;
    for (int region = 0; region < count; ++region) {
      threads.emplace_back([&, region] {
        auto& parameters = learned[size_t(region)];
        auto mine = options(leaders, region);
        mine.charter = "5 rounds";
        auto regions = Regions::join(mine, parameters);
        ASSERT_TRUE(regions) << regions.error().message;
        while ((*regions)->round() < rounds) {
          train(parameters, region, (*regions)->round());
          const auto round = (*regions)->average(parameters, 1 + region);
          ASSERT_TRUE(round) << round.error().message;
          EXPECT_EQ(round->regions, count);
          EXPECT_FALSE(round->adopted);
        }
        const auto finished = (*regions)->finish();
        EXPECT_TRUE(finished) << finished.error().message;
        sent += (*regions)->traffic().sent;
        received += (*regions)->traffic().received;
      });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& each : learned) EXPECT_EQ(each, learned[0]);

    const auto frame = [](const Message& message) {
      return collectives::frame_header_bytes + encode(message).size();
    };
    const size_t ways = size_t(count) * size_t(count - 1);
    const size_t greeting = collectives::encode(collectives::Hello{}).size() +
                            collectives::encode_proof({}).size() + frame(Join{}) + frame(Done{});
    const size_t founding = size_t(count - 1) * frame(Snapshot{0, Members(size_t(count)), {}, {}, {}});
    const size_t rounds_bytes = founding + rounds * round_bytes(Coding::bf16, parameters_count, count);
    // Greetings: who meets when it is a member already says so instead of that it wants to be one, and two that do not
    // lead may have finished before they meet.
    const size_t members = frame(local_sgd::Hello{0, false, Members(size_t(count))});
    EXPECT_GE(sent, rounds_bytes + 2 * size_t(count - 1) * greeting);
    EXPECT_LE(sent, rounds_bytes + ways * (greeting + members));
    // A goodbye may cross with our own leaving.
    EXPECT_LE(received, sent + ways * collectives::frame_header_bytes);
    EXPECT_GE(received, sent);
  }
}

TEST(Regions, cost_a_200th_of_an_allreduce_after_each_of_100_steps) {
  constexpr size_t parameters = 1'000'000;
  for (const int regions : {2, 3, 8}) {
    const double each_step = 2.0 * (regions - 1) * 4 * double(parameters);
    EXPECT_NEAR(double(round_bytes(Coding::bf16, parameters, regions)) / (100 * each_step), 1.0 / 200, 1e-6);
  }
}

TEST(Regions, who_never_comes_is_named_and_enough_others_begin_without_it) {
  const auto leaders = endpoints(3);
  for (const int regions_min : {0, 2}) {
    std::vector<std::thread> threads;
    for (const int region : {0, 2}) {
      threads.emplace_back([&, region] {
        auto hasty = options(leaders, region);
        hasty.join_deadline = 500ms;
        hasty.regions_min = regions_min;
        std::vector<float> parameters(4, 1.0f);
        const auto regions = Regions::join(hasty, parameters);
        if (regions_min == 2) {
          ASSERT_TRUE(regions) << regions.error().message;
          EXPECT_EQ((*regions)->size(), 2);
          EXPECT_TRUE((*regions)->average(parameters, 1));
          EXPECT_TRUE((*regions)->finish());
        } else {
          ASSERT_FALSE(regions);
          EXPECT_EQ(regions.error().kind, Kind::unavailable);
          EXPECT_NE(regions.error().message.find("region 1 ("), std::string::npos) << regions.error().message;
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

TEST(Regions, another_model_another_secret_and_garbage_are_refused) {
  const auto leaders = endpoints(2);
  // A refusal is heard at once; a stranger only makes the time go by.
  const auto fail = [&](size_t parameters_here, const std::string& secret, Duration deadline) {
    std::string why;
    std::thread other([&] {
      auto theirs = options(leaders, 1);
      theirs.join_deadline = deadline;
      theirs.shared_value = secret;
      std::vector<float> parameters(parameters_here);
      const auto regions = Regions::join(theirs, parameters);
      why = regions ? "" : regions.error().message;
    });
    auto ours = options(leaders, 0);
    ours.join_deadline = deadline;
    std::vector<float> parameters(7);
    EXPECT_FALSE(Regions::join(ours, parameters));
    other.join();
    return why;
  };
  EXPECT_NE(fail(8, "regions_test", 60s).find("7 parameters"), std::string::npos);
  EXPECT_NE(fail(7, "another", 1s).find("region 0 ("), std::string::npos);
  std::vector<float> parameters(7);
  EXPECT_EQ(Regions::join({}, parameters).error().kind, Kind::invalid);
  EXPECT_EQ(Regions::join(options(leaders, 2), parameters).error().kind, Kind::invalid);
  EXPECT_EQ(Regions::join(options(leaders, 0), {}).error().kind, Kind::invalid);
}

TEST(Regions, strangers_at_the_port_do_no_harm) {
  const auto leaders = endpoints(2);
  std::atomic<bool> knocked = false;
  std::thread stranger([&] {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(leaders[0].port);
    inet_pton(AF_INET, leaders[0].host.c_str(), &address.sin_addr);
    for (const std::string_view words : {"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", "TYR2"}) {
      for (int tries = 0; tries < 100000; ++tries) {
        const collectives::Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
        if (::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
          continue;
        (void)!::write(socket.descriptor(), words.data(), words.size());
        break;
      }
    }
    knocked = true;
  });
  std::vector<std::thread> threads;
  for (const int region : {0, 1}) {
    threads.emplace_back([&, region] {
      while (region == 1 && !knocked) std::this_thread::yield();
      std::vector<float> parameters(4, 1.0f);
      const auto regions = Regions::join(options(leaders, region), parameters);
      ASSERT_TRUE(regions) << regions.error().message;
      EXPECT_TRUE((*regions)->average(parameters, 1));
      EXPECT_TRUE((*regions)->finish());
    });
  }
  stranger.join();
  for (auto& thread : threads) thread.join();
}

TEST(Regions, may_encrypt_what_they_say_and_then_must_all) {
  const auto join_both = [&](const std::vector<collectives::Endpoint>& leaders, bool first, bool second,
                             Duration deadline) {
    std::vector<Result<void>> results(2, ok());
    std::vector<std::vector<float>> learned(2, std::vector<float>(parameters_count, 1.0f));
    std::vector<std::thread> threads;
    for (const int region : {0, 1}) {
      threads.emplace_back([&, region] {
        const auto play = [&]() -> Result<void> {
          auto mine = options(leaders, region);
          mine.encrypt = region == 0 ? first : second;
          mine.join_deadline = deadline;
          auto regions = TRY(Regions::join(mine, learned[size_t(region)]));
          train(learned[size_t(region)], region, 0);
          TRY(regions->average(learned[size_t(region)], 1));
          return regions->finish();
        };
        results[size_t(region)] = play();
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(!results[0] || learned[0] == learned[1]);
    return results;
  };
  for (const auto& result : join_both(endpoints(2), true, true, 60s))
    EXPECT_TRUE(result) << result.error().message;
  for (const auto& result : join_both(endpoints(2), true, false, 1s)) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, Kind::unavailable) << result.error().message;
  }
}

TEST(Regions, a_wait_can_be_cancelled) {
  auto mine = options(endpoints(2), 0);
  mine.cancelled = [] { return true; };
  std::vector<float> parameters(4);
  const auto regions = Regions::join(mine, parameters);
  ASSERT_FALSE(regions);
  EXPECT_EQ(regions.error().kind, Kind::cancelled);
}

// -- regions that die

constexpr int regions_count = 3;

// What the regions, processes of their own, tell each other and the test beside the links.
struct Board {
  std::atomic<uint64_t> round[regions_count];  // of each, after the last average()
  std::atomic<int> size[regions_count];        // of the circle, as each sees it
  std::atomic<uint64_t> rounds_of_all;         // after so many all end
  std::atomic<uint64_t> digest[regions_count];
};

uint64_t digest_of(const std::vector<float>& values) { return fnv1a(std::as_bytes(std::span(values))); }

[[noreturn]] void live(const RegionOptions& options, Board& board) {
  std::vector<float> parameters(parameters_count, 1.0f);
  auto regions = Regions::join(options, parameters);
  if (!regions) _exit(1);
  for (;;) {
    board.round[options.region] = (*regions)->round();
    board.size[options.region] = (*regions)->size();
    if ((*regions)->round() >= board.rounds_of_all) break;
    train(parameters, options.region, (*regions)->round());
    const auto round = (*regions)->average(parameters, 1);
    if (!round) {
      fprintf(stderr, "region %d: %s\n", options.region, round.error().message.c_str());
      _exit(2);
    }
  }
  if (!(*regions)->finish()) _exit(3);
  if ((*regions)->charter() != "charter of 0") _exit(4);  // of the first, whoever lives by now
  board.digest[options.region] = digest_of(parameters);
  _exit(0);
}

class Deaths : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    board_ = static_cast<Board*>(
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(board_, MAP_FAILED);
    board_->rounds_of_all = ~uint64_t{0};
    for (int region = 0; region < regions_count; ++region) start(region);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    }
    munmap(board_, sizeof(Board));
  }

  void start(int region) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) live(made(region), *board_);
    children_[region] = child;
  }
  virtual RegionOptions made(int region) { return options(leaders_, region); }
  // True within a minute, or the test fails.
  void wait_for(const char* what, const std::function<bool()>& condition) {
    for (int look = 0; look < 60'000; ++look) {
      if (condition()) return;
      std::this_thread::sleep_for(1ms);
    }
    FAIL() << "it never came about that " << what;
  }
  void expect_end_alike() {
    board_->rounds_of_all =
        std::max({board_->round[0].load(), board_->round[1].load(), board_->round[2].load()}) + 50;
    for (int region = 0; region < regions_count; ++region) {
      int status = 0;
      ASSERT_EQ(waitpid(children_[region], &status, 0), children_[region]);
      children_[region] = 0;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "region " << region << ": " << status;
      EXPECT_EQ(board_->digest[region], board_->digest[0]) << "region " << region;
      EXPECT_EQ(board_->round[region], board_->rounds_of_all);
    }
  }
  int other(int region) const { return (region + 1) % regions_count; }

  const std::vector<collectives::Endpoint> leaders_ = endpoints(regions_count);
  Board* board_ = nullptr;
  pid_t children_[regions_count] = {};
};

TEST_P(Deaths, of_a_region_are_survived_and_it_ends_with_the_same_parameters_when_it_comes_back) {
  const int victim = GetParam();
  wait_for("all train", [&] { return board_->round[victim] >= 5; });
  ASSERT_EQ(kill(children_[victim], SIGKILL), 0);
  waitpid(children_[victim], nullptr, 0);
  const uint64_t died_at = board_->round[victim];
  wait_for("the others go on without it",
           [&] { return board_->size[other(victim)] == 2 && board_->round[other(victim)] > died_at + 20; });
  board_->round[victim] = 0;
  start(victim);
  wait_for("it is one of them again",
           [&] { return board_->size[other(victim)] == 3 && board_->round[victim] > died_at + 20; });
  expect_end_alike();
}

INSTANTIATE_TEST_SUITE_P(Regions, Deaths, ::testing::Values(0, 1, 2));

class Stalls : public Deaths {
  RegionOptions made(int region) override {
    auto made = options(leaders_, region);
    made.round_timeout = 1s;  // longer than a busy machine keeps a living region from answering
    return made;
  }
};

TEST_P(Stalls, of_a_region_end_with_the_others_patience_and_it_comes_back_by_itself) {
  const int victim = GetParam();
  wait_for("all train", [&] { return board_->round[victim] >= 5; });
  ASSERT_EQ(kill(children_[victim], SIGSTOP), 0);
  const uint64_t stopped_at = board_->round[victim];
  wait_for("the others go on without it",
           [&] { return board_->size[other(victim)] == 2 && board_->round[other(victim)] > stopped_at + 3; });
  ASSERT_EQ(kill(children_[victim], SIGCONT), 0);
  wait_for("it is one of them again", [&] { return board_->size[other(victim)] == 3; });
  expect_end_alike();
}

INSTANTIATE_TEST_SUITE_P(Regions, Stalls, ::testing::Values(0, 2));

}  // namespace
}  // namespace trainyard::local_sgd
