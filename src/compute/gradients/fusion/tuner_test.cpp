// Tests the tuner on simulated machines, whose throughput is a formula.
#include "gradients/fusion/tuner.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace trainyard::gradients {
namespace {

using namespace std::chrono_literals;
using Rate = std::function<double(const Settings&)>;

// Returns the settings that the tuner chooses for a machine with this rate, with noise of a
// percent.
Settings tune(const Rate& rate, uint64_t seed, Settings first = {}, int* tries = nullptr) {
  Tuner tuner(first, seed);
  SeededRandom noise(seed + 1);
  Settings settings = first;
  constexpr int samples_max = 10'000;
  for (int i = 0; i < samples_max && !tuner.done(); ++i) {
    const double disturbed = rate(settings) * (0.99 + 0.02 * double(noise.below(1000)) / 1000) *
                             (noise.chance(40) ? 0.3 : 1);  // sometimes another program runs
    if (const auto next = tuner.sample(uint64_t(disturbed * 0.1), 100ms)) settings = *next;
  }
  EXPECT_TRUE(tuner.done());
  EXPECT_LE(tuner.tried().size(), size_t(Tuner::kTriesMax));
  if (tries) *tries = int(tuner.tried().size());
  return settings;
}

double best_of(const Rate& rate) {
  double best = 0;
  for (uint64_t fusion = Tuner::kFusionBytesMin; fusion <= Tuner::kFusionBytesMax; fusion *= 2) {
    for (uint32_t cycle = Tuner::kCycleMicrosecondsMin; cycle <= Tuner::kCycleMicrosecondsMax;
         cycle *= 2)
      best = std::max(best, rate({fusion, cycle}));
  }
  return best;
}

// Returns a rate that decreases on both sides of a best setting, slowly or fast.
Rate hill(double fusion_mib, double cycle_ms, double steepness) {
  return [=](const Settings& settings) {
    const double fusion = std::log2(double(settings.fusion_bytes) / (fusion_mib * 1024 * 1024));
    const double cycle = std::log2(settings.cycle_microseconds / (cycle_ms * 1000));
    return 1e9 / (1 + steepness * (fusion * fusion + cycle * cycle));
  };
}

TEST(Tuner, FindsSettingsNearTheBest) {
  for (const double fusion_mib : {0.0625, 1.0, 25.0, 128.0}) {
    for (const double cycle_ms : {0.125, 1.0, 5.0, 30.0}) {
      for (const double steepness : {0.02, 0.2}) {
        const Rate rate = hill(fusion_mib, cycle_ms, steepness);
        for (uint64_t seed = 1; seed <= 5; ++seed) {
          const Settings settings = tune(rate, seed);
          // If the rate depends strongly on the setting, the result differs by at most one power of
          // two on one axis.
          EXPECT_GT(rate(settings), best_of(rate) * (steepness < 0.1 ? 0.93 : 0.8))
              << fusion_mib << " MiB, " << cycle_ms << " ms, seed " << seed << ": "
              << settings.fusion_bytes << ", " << settings.cycle_microseconds;
        }
      }
    }
  }
}

// Each message has a latency, and each cycle a wait, as on a cluster of many ranks.
TEST(Tuner, BalancesLatencyAndWaiting) {
  const Rate rate = [](const Settings& settings) {
    const double gradients = 100e6, seconds_per_byte = 1e-9, latency = 2e-3;
    const double messages = std::max(1.0, gradients / double(settings.fusion_bytes));
    return gradients / (gradients * seconds_per_byte + messages * latency +
                        8 * settings.cycle_microseconds * 1e-6);
  };
  for (uint64_t seed = 1; seed <= 10; ++seed)
    EXPECT_GT(rate(tune(rate, seed)), 0.9 * best_of(rate));
}

TEST(Tuner, KeepsTheFirstSettingsIfRatesAreEqualAndIsDeterministic) {
  const Rate flat = [](const Settings&) { return 1e9; };
  const Settings first{uint64_t{64} << 20, 1000};
  int tries = 0;
  EXPECT_EQ(tune(flat, 3, first, &tries), first);
  EXPECT_EQ(tune(hill(1, 1, 0.1), 9), tune(hill(1, 1, 0.1), 9));
}

TEST(Tuner, IgnoresTimeInWhichNothingIsReduced) {
  Tuner tuner({}, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(tuner.sample(0, 100ms));
  EXPECT_TRUE(tuner.tried().empty());
}

}  // namespace
}  // namespace trainyard::gradients
