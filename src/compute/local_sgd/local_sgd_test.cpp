// Trains regions over loopback: as threads, and as processes of which some are killed.
#include "local_sgd/local_sgd.hpp"

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

constexpr size_t kParametersCount = 1000;

LocalSgdOptions options(const std::vector<collectives::Endpoint>& leaders, int region) {
  LocalSgdOptions options;
  options.leaders = leaders;
  options.region = region;
  options.shared_value = "local_sgd_test";
  options.charter = "charter of " + std::to_string(region);
  options.join_deadline = 60s;
  options.round_timeout = 60s;
  return options;
}

// Simulates the training of a region between two rounds: moves its parameters towards
// region-specific values.
void train(std::vector<float>& parameters, int region, uint64_t round) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const float aim = float((i * 7 + size_t(region) * 13 + round) % 17) / 16.0f;
    parameters[i] += 0.5f * (aim - parameters[i]);
  }
}

TEST(LocalSgd, RegionsEndWithEqualParametersAndSendTheDocumentedBytes) {
  constexpr uint64_t rounds = 5;
  for (int count = 1; count <= 4; ++count) {
    const auto leaders = endpoints(count);
    std::vector<std::vector<float>> learned(size_t(count),
                                            std::vector<float>(kParametersCount, 1.0f));
    std::atomic<uint64_t> sent = 0;
    std::atomic<uint64_t> received = 0;
    std::vector<std::thread> threads;
    for (int region = 0; region < count; ++region) {
      threads.emplace_back([&, region] {
        auto& parameters = learned[size_t(region)];
        auto mine = options(leaders, region);
        mine.charter = "5 rounds";
        auto regions = LocalSgd::join(mine, parameters);
        ASSERT_TRUE(regions) << regions.error().message;
        while ((*regions)->round() < rounds) {
          train(parameters, region, (*regions)->round());
          const auto round = (*regions)->average(parameters, 1 + region);
          ASSERT_TRUE(round) << round.error().message;
          EXPECT_EQ(round->regions, count);
          EXPECT_FALSE(round->caught_up);
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
      return collectives::kFrameHeaderBytes + encode(message).size();
    };
    const size_t directions = size_t(count) * size_t(count - 1);
    const size_t handshake = collectives::encode(collectives::Hello{}).size() +
                             collectives::encode_proof({}).size() + frame(Join{}) + frame(Done{});
    const size_t founding =
        size_t(count - 1) * frame(Snapshot{0, Members(size_t(count)), {}, {}, {}});
    const size_t rounds_bytes =
        founding + rounds * round_bytes(Coding::bf16, kParametersCount, count);
    // A region that is a member when a link comes up sends Hello instead of Join, and two regions
    // that do not lead may have finished before they are linked.
    const size_t members = frame(local_sgd::Hello{0, false, Members(size_t(count))});
    EXPECT_GE(sent, rounds_bytes + 2 * size_t(count - 1) * handshake);
    EXPECT_LE(sent, rounds_bytes + directions * (handshake + members));
    // A goodbye may be sent or received after its sender or its receiver has read the counters.
    EXPECT_LE(received, sent + directions * collectives::kFrameHeaderBytes);
    EXPECT_GE(received + directions * collectives::kFrameHeaderBytes, sent);
  }
}

TEST(LocalSgd, SendsA200thOfTheBytesOfAnAllreducePerStepWith100Steps) {
  constexpr size_t parameters = 1'000'000;
  for (const int regions : {2, 3, 8}) {
    const double each_step = 2.0 * (regions - 1) * 4 * double(parameters);
    EXPECT_NEAR(double(round_bytes(Coding::bf16, parameters, regions)) / (100 * each_step),
                1.0 / 200, 1e-6);
  }
}

TEST(LocalSgd, NamesARegionThatNeverJoinsAndBeginsWithRegionsMinOthers) {
  const auto leaders = endpoints(3);
  for (const int regions_min : {0, 2}) {
    std::vector<std::thread> threads;
    for (const int region : {0, 2}) {
      threads.emplace_back([&, region] {
        auto own = options(leaders, region);
        own.join_deadline = 500ms;
        own.regions_min = regions_min;
        std::vector<float> parameters(4, 1.0f);
        const auto regions = LocalSgd::join(own, parameters);
        if (regions_min == 2) {
          ASSERT_TRUE(regions) << regions.error().message;
          EXPECT_EQ((*regions)->size(), 2);
          EXPECT_TRUE((*regions)->average(parameters, 1));
          EXPECT_TRUE((*regions)->finish());
        } else {
          ASSERT_FALSE(regions);
          EXPECT_EQ(regions.error().kind, Kind::unavailable);
          EXPECT_NE(regions.error().message.find("region 1 ("), std::string::npos)
              << regions.error().message;
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
}

TEST(LocalSgd, RejectsADifferentModelOrSecretAndInvalidOptions) {
  const auto leaders = endpoints(2);
  // A refusal arrives at once; a wrong secret ends with the join deadline.
  const auto fail = [&](size_t parameters_here, const std::string& secret, Duration deadline) {
    std::string why;
    std::thread other([&] {
      auto theirs = options(leaders, 1);
      theirs.join_deadline = deadline;
      theirs.shared_value = secret;
      std::vector<float> parameters(parameters_here);
      const auto regions = LocalSgd::join(theirs, parameters);
      why = regions ? "" : regions.error().message;
    });
    auto ours = options(leaders, 0);
    ours.join_deadline = deadline;
    std::vector<float> parameters(7);
    EXPECT_FALSE(LocalSgd::join(ours, parameters));
    other.join();
    return why;
  };
  EXPECT_NE(fail(8, "local_sgd_test", 60s).find("7 parameters"), std::string::npos);
  EXPECT_NE(fail(7, "another", 1s).find("region 0 ("), std::string::npos);
  std::vector<float> parameters(7);
  EXPECT_EQ(LocalSgd::join({}, parameters).error().kind, Kind::invalid);
  EXPECT_EQ(LocalSgd::join(options(leaders, 2), parameters).error().kind, Kind::invalid);
  EXPECT_EQ(LocalSgd::join(options(leaders, 0), {}).error().kind, Kind::invalid);
}

TEST(LocalSgd, IgnoresUnauthenticatedConnections) {
  const auto leaders = endpoints(2);
  std::atomic<bool> connected = false;
  std::thread intruder([&] {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(leaders[0].port);
    inet_pton(AF_INET, leaders[0].host.c_str(), &address.sin_addr);
    for (const std::string_view bytes : {"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", "TYR2"}) {
      for (int tries = 0; tries < 100000; ++tries) {
        const collectives::Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
        if (::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address) !=
            0)
          continue;
        (void)!::write(socket.descriptor(), bytes.data(), bytes.size());
        break;
      }
    }
    connected = true;
  });
  std::vector<std::thread> threads;
  for (const int region : {0, 1}) {
    threads.emplace_back([&, region] {
      while (region == 1 && !connected) std::this_thread::yield();
      std::vector<float> parameters(4, 1.0f);
      const auto regions = LocalSgd::join(options(leaders, region), parameters);
      ASSERT_TRUE(regions) << regions.error().message;
      EXPECT_TRUE((*regions)->average(parameters, 1));
      EXPECT_TRUE((*regions)->finish());
    });
  }
  intruder.join();
  for (auto& thread : threads) thread.join();
}

TEST(LocalSgd, EncryptsIfAllRegionsHaveTheOptionAndFailsIfOnlySomeHave) {
  const auto join_both = [&](const std::vector<collectives::Endpoint>& leaders, bool first,
                             bool second, Duration deadline) {
    std::vector<Result<void>> results(2, ok());
    std::vector<std::vector<float>> learned(2, std::vector<float>(kParametersCount, 1.0f));
    std::vector<std::thread> threads;
    for (const int region : {0, 1}) {
      threads.emplace_back([&, region] {
        const auto run_region = [&]() -> Result<void> {
          auto mine = options(leaders, region);
          mine.encrypt = region == 0 ? first : second;
          mine.join_deadline = deadline;
          auto regions = TRY(LocalSgd::join(mine, learned[size_t(region)]));
          train(learned[size_t(region)], region, 0);
          TRY(regions->average(learned[size_t(region)], 1));
          return regions->finish();
        };
        results[size_t(region)] = run_region();
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

TEST(LocalSgd, AWaitCanBeCancelled) {
  auto mine = options(endpoints(2), 0);
  mine.cancelled = [] { return true; };
  std::vector<float> parameters(4);
  const auto regions = LocalSgd::join(mine, parameters);
  ASSERT_FALSE(regions);
  EXPECT_EQ(regions.error().kind, Kind::cancelled);
}

// -- regions that are killed

constexpr int kRegionsCount = 3;

// Memory that the processes of the regions share with the test.
struct SharedState {
  std::atomic<uint64_t> round[kRegionsCount];  // by region, after its last average()
  std::atomic<int> size[kRegionsCount];        // members of the group, as seen by each region
  std::atomic<uint64_t> rounds_of_all;         // the round after which all regions end
  std::atomic<uint64_t> digest[kRegionsCount];
};

uint64_t digest_of(const std::vector<float>& values) {
  return fnv1a(std::as_bytes(std::span(values)));
}

[[noreturn]] void run_region(const LocalSgdOptions& options, SharedState& shared) {
  std::vector<float> parameters(kParametersCount, 1.0f);
  auto regions = LocalSgd::join(options, parameters);
  if (!regions) _exit(1);
  for (;;) {
    shared.round[options.region] = (*regions)->round();
    shared.size[options.region] = (*regions)->size();
    if ((*regions)->round() >= shared.rounds_of_all) break;
    train(parameters, options.region, (*regions)->round());
    const auto round = (*regions)->average(parameters, 1);
    if (!round) {
      fprintf(stderr, "region %d: %s\n", options.region, round.error().message.c_str());
      _exit(2);
    }
  }
  if (!(*regions)->finish()) _exit(3);
  if ((*regions)->charter() != "charter of 0") _exit(4);  // of the founder
  shared.digest[options.region] = digest_of(parameters);
  _exit(0);
}

class KilledRegion : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    shared_ = static_cast<SharedState*>(mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(shared_, MAP_FAILED);
    shared_->rounds_of_all = ~uint64_t{0};
    for (int region = 0; region < kRegionsCount; ++region) start(region);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    }
    munmap(shared_, sizeof(SharedState));
  }

  void start(int region) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_region(options_of(region), *shared_);
    children_[region] = child;
  }
  virtual LocalSgdOptions options_of(int region) { return options(leaders_, region); }
  // Waits until is_true() returns true; the test fails after a minute.
  void wait_for(const char* what, const std::function<bool()>& condition) {
    for (int look = 0; look < 60'000; ++look) {
      if (condition()) return;
      std::this_thread::sleep_for(1ms);
    }
    FAIL() << "timed out waiting until " << what;
  }
  void expect_equal_ends() {
    shared_->rounds_of_all =
        std::max({shared_->round[0].load(), shared_->round[1].load(), shared_->round[2].load()}) +
        50;
    for (int region = 0; region < kRegionsCount; ++region) {
      int status = 0;
      ASSERT_EQ(waitpid(children_[region], &status, 0), children_[region]);
      children_[region] = 0;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << "region " << region << ": " << status;
      EXPECT_EQ(shared_->digest[region], shared_->digest[0]) << "region " << region;
      EXPECT_EQ(shared_->round[region], shared_->rounds_of_all);
    }
  }
  int other(int region) const { return (region + 1) % kRegionsCount; }

  const std::vector<collectives::Endpoint> leaders_ = endpoints(kRegionsCount);
  SharedState* shared_ = nullptr;
  pid_t children_[kRegionsCount] = {};
};

TEST_P(KilledRegion, ComesBackAndEndsWithTheSameParameters) {
  const int killed = GetParam();
  wait_for("all train", [&] { return shared_->round[killed] >= 5; });
  ASSERT_EQ(kill(children_[killed], SIGKILL), 0);
  waitpid(children_[killed], nullptr, 0);
  const uint64_t died_at = shared_->round[killed];
  wait_for("the others continue without it", [&] {
    return shared_->size[other(killed)] == 2 && shared_->round[other(killed)] > died_at + 20;
  });
  shared_->round[killed] = 0;
  start(killed);
  wait_for("it is a member again", [&] {
    return shared_->size[other(killed)] == 3 && shared_->round[killed] > died_at + 20;
  });
  expect_equal_ends();
}

INSTANTIATE_TEST_SUITE_P(LocalSgd, KilledRegion, ::testing::Values(0, 1, 2));

class StalledRegion : public KilledRegion {
  LocalSgdOptions options_of(int region) override {
    auto all = options(leaders_, region);
    all.round_timeout = 1s;  // longer than a busy machine keeps a living region from answering
    return all;
  }
};

TEST_P(StalledRegion, IsDroppedAfterTheTimeoutAndComesBackByItself) {
  const int killed = GetParam();
  wait_for("all train", [&] { return shared_->round[killed] >= 5; });
  ASSERT_EQ(kill(children_[killed], SIGSTOP), 0);
  const uint64_t stopped_at = shared_->round[killed];
  wait_for("the others continue without it", [&] {
    return shared_->size[other(killed)] == 2 && shared_->round[other(killed)] > stopped_at + 3;
  });
  ASSERT_EQ(kill(children_[killed], SIGCONT), 0);
  wait_for("it is a member again", [&] { return shared_->size[other(killed)] == 3; });
  expect_equal_ends();
}

INSTANTIATE_TEST_SUITE_P(LocalSgd, StalledRegion, ::testing::Values(0, 2));

}  // namespace
}  // namespace trainyard::local_sgd
