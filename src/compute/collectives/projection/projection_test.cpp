#include <gtest/gtest.h>

#include <cmath>

#include "collectives/projection/replay.hpp"
#include "collectives/projection/step.hpp"

namespace trainyard::collectives::projection {
namespace {

using plan::Algorithm;
using plan::Operation;

constexpr double kGigabit = 1e9 / 8;

Choice choice_of(Algorithm algorithm, size_t chunk_bytes = 0, Algorithm between = Algorithm::ring) {
  Choice choice;
  choice.algorithm = algorithm;
  choice.chunk_bytes = chunk_bytes;
  choice.between = between;
  return choice;
}

// Returns hosts of one rank each, where only the network has a cost.
Cluster network_of(int ranks, double latency, double bytes_per_second) {
  Cluster cluster;
  cluster.hosts = hosts_of(ranks, 1);
  cluster.between = {latency, 1 / bytes_per_second};
  cluster.message_seconds = 0;
  cluster.reduce_seconds_per_byte = 0;
  return cluster;
}

TEST(Replay, ARingTakesTheTextbookTime) {
  for (const int ranks : {2, 3, 4, 8, 17}) {
    const size_t bytes = size_t(ranks) * 4096 * 100;
    const auto cluster = network_of(ranks, 50e-6, kGigabit);
    const double formula = 2.0 * (ranks - 1) * (50e-6 + double(bytes) / ranks / kGigabit);
    EXPECT_NEAR(allreduce_seconds(choice_of(Algorithm::ring), bytes, cluster), formula,
                formula * 1e-9)
        << ranks;
  }
}

TEST(Replay, HalvingDoublingTakesTheTextbookTime) {
  for (const int ranks : {2, 4, 8, 16}) {
    const size_t bytes = size_t(ranks) * 4096 * 100;
    const auto cluster = network_of(ranks, 50e-6, kGigabit);
    const double formula =
        2 * std::log2(ranks) * 50e-6 + 2.0 * (ranks - 1) / ranks * double(bytes) / kGigabit;
    EXPECT_NEAR(allreduce_seconds(choice_of(Algorithm::halving_doubling), bytes, cluster), formula,
                formula * 1e-9)
        << ranks;
  }
}

TEST(Replay, DirectSendsAsFewBytesAsTheRing) {
  for (const int ranks : {2, 3, 4, 8, 17}) {
    const size_t bytes = size_t(ranks) * 4096 * 100;
    const auto cluster = network_of(ranks, 50e-6, kGigabit);
    const double formula = 2 * 50e-6 + 2.0 * (ranks - 1) / ranks * double(bytes) / kGigabit;
    EXPECT_NEAR(allreduce_seconds(choice_of(Algorithm::direct), bytes, cluster), formula,
                formula * 1e-9)
        << ranks;
  }
}

TEST(Replay, OverlapsReductionsWithTransfersOfChunks) {
  auto cluster = network_of(2, 0, kGigabit);
  cluster.reduce_seconds_per_byte = 0.5 / kGigabit;
  const size_t bytes = 8 << 20;
  const double wire = double(bytes) / kGigabit;  // each direction carries 2 (n-1)/n of it
  const double whole = allreduce_seconds(choice_of(Algorithm::ring), bytes, cluster);
  EXPECT_NEAR(whole, wire * 1.25, wire * 0.001)
      << "half of the bytes are reduced, each in half of its transfer time";
  for (const auto algorithm : {Algorithm::ring, Algorithm::direct}) {
    const double cut = allreduce_seconds(choice_of(algorithm, 64 << 10), bytes, cluster);
    EXPECT_LT(cut, wire * 1.02) << to_string(algorithm);
    EXPECT_GE(cut, wire * 0.9999) << to_string(algorithm);
  }
}

TEST(Replay, LetsBurstsThrough) {
  auto cluster = network_of(2, 1e-3, kGigabit);
  cluster.burst_bytes = 128 << 10;
  // Each operation sends one burst in each direction, twice. While a message is in transit, the
  // link regains most of its burst. Consecutive operations wait for the rest.
  const double wire_of_one = (128 << 10) / kGigabit;
  const double seconds = allreduce_seconds(choice_of(Algorithm::ring), 256 << 10, cluster);
  EXPECT_GT(seconds, 2e-3);
  EXPECT_LT(seconds, 2e-3 + 0.5 * wire_of_one);
  const size_t much = 64 << 20;
  const double wire = double(much) / kGigabit;
  EXPECT_NEAR(allreduce_seconds(choice_of(Algorithm::ring), much, cluster), wire, 0.01 * wire);
}

TEST(Replay, SharesAHostsUplinkBetweenItsRanks) {
  auto cluster = network_of(16, 0, kGigabit);
  cluster.hosts = hosts_of(16, 8);
  cluster.local = {0, 0};
  const size_t bytes = 16 << 20;
  const double wire = double(bytes) / kGigabit;
  EXPECT_NEAR(allreduce_seconds(choice_of(Algorithm::hierarchical), bytes, cluster), wire,
              wire * 0.001)
      << "2 (hosts-1)/hosts of the bytes, for any number of ranks per host";
  EXPECT_NEAR(allreduce_seconds(choice_of(Algorithm::direct), bytes, cluster), 8 * wire, 0.1 * wire)
      << "each of 8 ranks sends a sixteenth to each of 8, twice";
}

TEST(Replay, SharesAHostsDownlinkBetweenItsSenders) {
  // Rank 1 is the one beyond a power of two. It sends all bytes to rank 0 while rank 2 sends half
  // of them to rank 0: 1.5 times the bytes. Then ranks 0 and 2 exchange halves, one direction after
  // the other, and rank 1 receives all bytes.
  const size_t bytes = 16 << 20;
  const double wire = double(bytes) / kGigabit;
  const double seconds =
      allreduce_seconds(choice_of(Algorithm::halving_doubling), bytes, network_of(3, 0, kGigabit));
  EXPECT_NEAR(seconds, 3.5 * wire, 0.1 * wire) << "3 if the first message had the whole downlink";
}

TEST(Replay, SharesAHostsProcessorsBetweenItsRanks) {
  Cluster cluster;
  cluster.hosts = hosts_of(4, 4);
  cluster.local = {0, 1e-9};
  cluster.reduce_seconds_per_byte = 1e-9;
  const auto choice = choice_of(Algorithm::direct, 256 << 10);
  cluster.processors = 4;
  const double alone = allreduce_seconds(choice, 4 << 20, cluster);
  cluster.processors = 2;
  EXPECT_NEAR(allreduce_seconds(choice, 4 << 20, cluster), 2 * alone, 0.2 * alone);
}

TEST(Replay, EndsForEveryPlanAndNumberOfRanks) {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for (const int local : {1, 3, 8}) {
      Cluster cluster;
      cluster.hosts = hosts_of(ranks, local);
      for (int i = 0; i <= int(Algorithm::hierarchical); ++i) {
        const auto algorithm = Algorithm(i);
        const double seconds = allreduce_seconds(choice_of(algorithm, 4096), 100'000, cluster);
        EXPECT_EQ(seconds > 0, ranks > 1) << ranks << " " << to_string(algorithm);
        EXPECT_EQ(seconds, allreduce_seconds(choice_of(algorithm, 4096), 100'000, cluster))
            << "deterministic";
      }
    }
  }
}

TEST(Workloads, HaveThePapersParameters) {
  EXPECT_NEAR(resnet(50).parameters(), 25.5e6, 0.1e6);
  EXPECT_NEAR(resnet(101).parameters(), 44.4e6, 0.2e6);
  EXPECT_NEAR(vgg16().parameters(), 138.3e6, 0.2e6);
  EXPECT_NEAR(bert_large().parameters(), 334e6, 2e6);
  EXPECT_NEAR(mask_rcnn().parameters(), 44e6, 2e6);
}

TEST(Steps, HideCommunicationBehindTheBackwardPass) {
  Workload workload{"two layers", {{1e6, 1}, {1e6, 1}}, 0.3, 4};
  const auto cluster = network_of(2, 0, 1e9);
  const auto ring = [](size_t) { return choice_of(Algorithm::ring); };
  // A layer has 4 MB, which take 4 ms at 1 GB/s. The first operation overlaps with 0.1 s of the
  // backward pass of the second layer, the last with nothing.
  const auto times = step(workload, cluster, {4e6, 0, 0}, ring);
  EXPECT_NEAR(times.exposed, 0.004, 1e-6);
  EXPECT_NEAR(times.efficiency(), 0.3 / 0.304, 1e-6);
  const auto at_the_end = step(workload, cluster, {100e6, 0, 0}, ring);
  EXPECT_NEAR(at_the_end.exposed, 0.008, 1e-6)
      << "the only bucket is ready at the end of the backward pass";
  const auto alone = step(workload, network_of(1, 0, 1e9), {4e6, 0, 0.1}, ring);
  EXPECT_EQ(alone.total(), 0.3);
}

TEST(Steps, WaitForTheSlowest) {
  // Expected largest of n draws, from tables of order statistics.
  EXPECT_NEAR(largest_of(2), 0.564, 0.03);
  EXPECT_NEAR(largest_of(10), 1.539, 0.03);
  EXPECT_NEAR(largest_of(1000), 3.241, 0.03);
  Workload workload{"no gradients", {{0, 1}}, 1, 4};
  const auto times = step(workload, network_of(10, 0, 1e9), {4e6, 0, 0.1},
                          [](size_t) { return choice_of(Algorithm::ring); });
  EXPECT_NEAR(times.total(), 1.154, 0.005);
}

}  // namespace
}  // namespace trainyard::collectives::projection
