// Tests that compressed sums are equal on all ranks and have the documented sizes, and that their
// errors are added in later steps.
#include "gradients/compress/compressor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/select.hpp"
#include "collectives/testing/groups.hpp"
#include "collectives/transport/memory/memory_transport.hpp"
#include "gradients/compress/casts.hpp"
#include "gradients/compress/int8.hpp"

namespace trainyard::gradients {
namespace {

using collectives::testing::expect_ok;
using collectives::testing::run_ranks_in_memory;
using CompressionKind = Compression::Kind;

std::vector<float> random_values(size_t count, uint64_t seed, float largest = 1) {
  SeededRandom random(seed);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back((float(random.below(2000001)) / 1e6f - 1) * largest);
  return values;
}

double length_of(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double(value) * double(value);
  return std::sqrt(squares);
}

std::vector<float> minus(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> difference;
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  return difference;
}

CompressedTensor in_place(const std::string& key, std::vector<float>& values, Matrix shape) {
  return {key, values.data(), values.data(), shape};
}
CompressedTensor in_place(const std::string& key, std::vector<float>& values) {
  return in_place(key, values, {values.size(), 1});
}

TEST(Int8, RoundsByAtMostHalfAScaleAndStoresTheErrors) {
  for (const size_t elements : {0, 1, 255, 256, 257, 1000}) {
    for (const float largest : {1e-30f, 1e-3f, 1.0f, 3e38f}) {
      const auto original = random_values(elements, elements + 1, largest);
      auto lost = original;
      std::vector<std::byte> bytes(int8_bytes(elements));
      to_int8(lost.data(), elements, bytes.data());
      std::vector<float> back(elements);
      from_int8(bytes.data(), elements, back.data());
      for (size_t i = 0; i < elements; ++i) {
        EXPECT_LE(std::fabs(lost[i]), largest / 254 * 1.0001f);
        EXPECT_NEAR(back[i], original[i] - lost[i], largest * 1e-6f);
      }
    }
  }
}

TEST(Int8, NanInvalidatesOnlyItsBlock) {
  auto values = random_values(600, 3);
  values[300] = INFINITY;
  values[301] = NAN;
  std::vector<std::byte> bytes(int8_bytes(600));
  to_int8(values.data(), 600, bytes.data());
  std::vector<float> back(600);
  from_int8(bytes.data(), 600, back.data());
  for (size_t i = 0; i < 600; ++i) {
    EXPECT_EQ(std::isnan(back[i]), i >= 256 && i < 512);
    EXPECT_TRUE(std::isfinite(values[i]))
        << "a value that is not finite must not stay in the residual";
  }
}

TEST(LowRank, MakesColumnsOrthonormalAndDependentOnesZero) {
  const size_t rows = 40, rank = 5;
  auto p = random_values(rows * rank, 1);
  for (size_t row = 0; row < rows; ++row) p[row * rank + 3] = 2 * p[row * rank] - p[row * rank + 1];
  orthonormalise(p.data(), rows, rank);
  for (size_t a = 0; a < rank; ++a) {
    for (size_t b = 0; b < rank; ++b) {
      double dot = 0;
      for (size_t row = 0; row < rows; ++row)
        dot += double(p[row * rank + a]) * double(p[row * rank + b]);
      EXPECT_NEAR(dot, a == b && a != 3 ? 1 : 0, 1e-6) << a << " and " << b;
    }
  }
}

// Compares the bits of all ranks after one step of each kind, with tensors of uneven sizes, and
// compares the sums with exact ones.
TEST(Compressor, GivesAllRanksTheSameBitsNearTheSums) {
  struct Case {
    Compression compression;
    double tolerance;  // relative to the largest sum; low_rank guarantees nothing for one step
  };
  for (const Case& one :
       {Case{{CompressionKind::f16}, 0x1p-8}, Case{{CompressionKind::bf16}, 0x1p-5},
        Case{{CompressionKind::int8}, 0.02}, Case{{CompressionKind::low_rank, 3}, 100}}) {
    for (const int ranks : {1, 2, 3, 5}) {
      Mutex mutex;
      std::vector<std::vector<float>> results;
      run_ranks_in_memory(ranks, [&](collectives::Group& group) {
        Compressor compressor(group);
        const auto seed = uint64_t(group.rank());
        std::vector<std::vector<float>> tensors{random_values(1, seed),
                                                random_values(24 * 31, seed + 10),
                                                random_values(777, seed + 20),
                                                {}};
        for (const collectives::Reduction reduction :
             {collectives::Reduction::sum, collectives::Reduction::average}) {
          auto values = tensors;
          std::vector<CompressedTensor> parts{in_place("a", values[0]),
                                              in_place("b", values[1], {24, 31}),
                                              in_place("c", values[2]), in_place("d", values[3])};
          expect_ok(compressor.allreduce(parts, one.compression, reduction));
          for (size_t i = 0; i < tensors.size(); ++i) {
            auto expected = tensors[i];
            expect_ok(group.allreduce(expected, reduction));
            for (size_t k = 0; k < expected.size(); ++k)
              EXPECT_NEAR(values[i][k], expected[k], one.tolerance * ranks)
                  << to_string(one.compression);
          }
          const MutexLock lock(mutex);
          for (auto& each : values) results.push_back(each);
        }
      });
      ASSERT_EQ(results.size(), size_t(ranks) * 8);
      std::sort(results.begin(), results.end());
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(results[i], results[i - i % size_t(ranks)]) << to_string(one.compression);
    }
  }
}

// An error is at most 1/254 of the block maximum, which itself includes the previous error. So for
// gradients of at most G it never exceeds G/253.
TEST(Compressor, BoundsTheErrorsOfInt8AndSendsThemLater) {
  constexpr int ranks = 3;
  constexpr size_t elements = 700;
  constexpr int steps = 200;
  run_ranks_in_memory(ranks, [&](collectives::Group& group) {
    Compressor compressor(group);
    std::vector<double> given(elements), got(elements);
    for (int step = 0; step < steps; ++step) {
      const auto seed = uint64_t(step * ranks + group.rank());
      std::vector<float> values = random_values(elements, seed), exact = values;
      expect_ok(group.allreduce(exact));
      expect_ok(compressor.allreduce(std::vector{in_place("w", values)}, {CompressionKind::int8},
                                     collectives::Reduction::sum));
      for (size_t i = 0; i < elements; ++i) {
        given[i] += double(exact[i]);
        got[i] += double(values[i]);
      }
      for (const float residual : compressor.residual("w"))
        EXPECT_LE(std::fabs(residual), 1.001f / 253);
      // A sum is at most ranks (1 + 1/253).
      for (const float residual : compressor.sum_residual("w"))
        EXPECT_LE(std::fabs(residual), 1.001f * ranks * (1 + 1.0f / 253) / 253);
    }
    // The missing part at the end equals the stored errors: at most those of one step, whatever the
    // number of steps.
    for (size_t i = 0; i < elements; ++i)
      EXPECT_NEAR(got[i], given[i], 2.0 * ranks / 253 + 1e-4 * steps / 200);
  });
}

// A matrix of rank k is approximated within a few steps; any other matrix arrives completely in the
// end. The gradients of the ranks are independent here, and the same in all 1000 steps. Without the
// exact rows, parts that cancel out in the average would add up 1000 times. They add up over
// kRowInterval x rows steps at most.
TEST(Compressor, LowRankApproximatesMatricesAndIsAFewStepsBehindAtMost) {
  constexpr Matrix shape{30, 20};
  constexpr size_t rank = 2;
  run_ranks_in_memory(2, [&](collectives::Group& group) {
    Compressor compressor(group);
    const auto left = random_values(shape.rows * rank, 5),
               right = random_values(shape.columns * rank, 6);
    std::vector<float> thin(shape.elements());
    product(left.data(), right.data(), shape, rank, thin.data());
    std::vector<float> values;
    for (int step = 0; step < 6; ++step) {
      values = thin;
      expect_ok(compressor.allreduce(std::vector{in_place("thin", values, shape)},
                                     {CompressionKind::low_rank, rank},
                                     collectives::Reduction::average));
    }
    EXPECT_LT(length_of(minus(values, thin)), 1e-3 * length_of(thin));

    const auto full = random_values(shape.elements(), uint64_t(group.rank()) + 7);
    std::vector<float> average = full;
    expect_ok(group.allreduce(average, collectives::Reduction::average));
    std::vector<double> got(shape.elements());
    constexpr int steps = 1000;
    const double few = double(shape.columns) / double(rank);
    const double cycle = double(kRowInterval * shape.rows);
    for (int step = 1; step <= steps; ++step) {
      values = full;
      expect_ok(compressor.allreduce(std::vector{in_place("full", values, shape)},
                                     {CompressionKind::low_rank, rank},
                                     collectives::Reduction::average));
      for (size_t i = 0; i < got.size(); ++i) got[i] += double(values[i]);
      EXPECT_LT(length_of(compressor.residual("full")), cycle * length_of(full))
          << "after " << step << " steps";
    }
    std::vector<float> missing;
    for (size_t i = 0; i < got.size(); ++i)
      missing.push_back(float(double(average[i]) * steps - got[i]));
    EXPECT_LT(length_of(missing), few * length_of(average) * 2)
        << "little of the average is still missing";
  });
}

TEST(Compressor, LowRankSendsAGradientThatWasZeroBefore) {
  run_ranks_in_memory(2, [&](collectives::Group& group) {
    Compressor compressor(group);
    constexpr Matrix shape{16, 16};
    std::vector<float> values(shape.elements());
    const auto send = [&] {
      expect_ok(compressor.allreduce(std::vector{in_place("w", values, shape)},
                                     {CompressionKind::low_rank, 2}, collectives::Reduction::sum));
    };
    send();
    EXPECT_EQ(length_of(values), 0);
    const auto column = random_values(shape.rows, 3);
    for (size_t i = 0; i < values.size(); ++i) values[i] = column[i / shape.columns];
    const auto original = values;
    send();
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], 2 * original[i], 1e-4);
  });
}

TEST(Compressor, SendsTheDocumentedNumberOfBytes) {
  const Matrix shape{48, 32};
  const size_t vector_elements = 300;
  for (const int ranks : {2, 3, 4}) {
    for (const Compression compression : {Compression{CompressionKind::f16},
                                          {CompressionKind::bf16},
                                          {CompressionKind::int8},
                                          {CompressionKind::low_rank, 4}}) {
      auto transports = collectives::connect_in_memory(ranks);
      std::vector<collectives::MemoryTransport*> counters;
      std::vector<std::unique_ptr<collectives::Group>> groups(static_cast<size_t>(ranks));
      for (auto& transport : transports) counters.push_back(transport.get());
      std::vector<std::thread> threads;
      for (size_t rank = 0; rank < size_t(ranks); ++rank) {
        threads.emplace_back([&, rank] {
          groups[rank] = std::move(
              *collectives::Group::make(std::move(transports[rank]), {.deterministic = true}));
          Compressor compressor(*groups[rank]);
          auto matrix = random_values(shape.elements(), rank),
               vector = random_values(vector_elements, rank);
          const std::vector tensors{in_place("matrix", matrix, shape), in_place("vector", vector)};
          expect_ok(compressor.allreduce(tensors, compression, collectives::Reduction::sum));
        });
      }
      for (auto& thread : threads) thread.join();
      uint64_t sent = 0;
      for (auto* counter : counters) sent += counter->bytes_sent();

      const auto allreduce_bytes = [&](size_t elements, collectives::Type type) {
        collectives::plan::Plan plan;
        plan.operation = collectives::plan::Operation::allreduce;
        plan.ranks = ranks;
        plan.elements = elements;
        const auto& choice = groups[0]->table().choose(plan.operation, elements * bytes_of(type));
        plan.algorithm = choice.algorithm;
        plan.chunk_elements = choice.chunk_bytes / bytes_of(type);
        return collectives::plan::cost(plan).elements_sent_by_all * bytes_of(type);
      };
      const size_t elements = shape.elements() + vector_elements;
      uint64_t expected = 0;
      if (compression.kind == CompressionKind::int8) {
        for (const size_t count : {shape.elements(), vector_elements}) {
          for (int rank = 0; rank < ranks; ++rank) {
            const auto blocks = collectives::plan::piece(int8_blocks(count), rank, ranks);
            const size_t piece = std::min(count, blocks.end * kInt8BlockElements) -
                                 std::min(count, blocks.begin * kInt8BlockElements);
            expected += 2 * uint64_t(ranks - 1) * int8_bytes(piece);
          }
        }
      } else if (compression.kind == CompressionKind::low_rank) {
        expected = allreduce_bytes(4 * shape.rows + vector_elements, collectives::Type::f32) +
                   allreduce_bytes(4 * shape.columns, collectives::Type::f32);
      } else {
        expected = allreduce_bytes(elements, cast_type(compression));
      }
      EXPECT_EQ(sent, expected) << to_string(compression) << " on " << ranks << " ranks";
    }
  }
}

// Trains logistic regression by plain gradient descent, each rank with its own samples.
double train(const std::optional<Compression>& compression, int ranks, int steps) {
  constexpr size_t features = 12, classes = 10, samples = 64;
  constexpr float rate = 0.5f;
  constexpr Matrix shape{features, classes};
  double loss = 0;
  run_ranks_in_memory(ranks, [&](collectives::Group& group) {
    Compressor compressor(group);
    const auto hidden = random_values(shape.elements(), 99, 2);
    const auto inputs = random_values(samples * features, uint64_t(group.rank()) + 1);
    const auto scores_of = [&](const std::vector<float>& weights, size_t sample) {
      std::vector<double> scores(classes);
      for (size_t i = 0; i < features; ++i) {
        for (size_t k = 0; k < classes; ++k)
          scores[k] += double(inputs[sample * features + i]) * double(weights[i * classes + k]);
      }
      return scores;
    };
    std::vector<float> weights(shape.elements());
    double own_loss = 0;
    for (int step = 0; step <= steps; ++step) {
      std::vector<float> gradient(shape.elements());
      own_loss = 0;
      for (size_t sample = 0; sample < samples; ++sample) {
        const auto truth = scores_of(hidden, sample);
        const auto label = size_t(std::max_element(truth.begin(), truth.end()) - truth.begin());
        auto scores = scores_of(weights, sample);
        double total = 0;
        for (double& score : scores) total += score = std::exp(score);
        own_loss -= std::log(scores[label] / total) / samples;
        for (size_t i = 0; i < features; ++i) {
          for (size_t k = 0; k < classes; ++k)
            gradient[i * classes + k] +=
                float((scores[k] / total - (k == label ? 1 : 0)) / samples) *
                inputs[sample * features + i];
        }
      }
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += 0.01f * weights[i];
      if (compression) {
        expect_ok(compressor.allreduce(std::vector{in_place("w", gradient, shape)}, *compression,
                                       collectives::Reduction::average));
      } else {
        expect_ok(group.allreduce(gradient, collectives::Reduction::average));
      }
      for (size_t i = 0; i < gradient.size(); ++i) weights[i] -= rate * gradient[i];
    }
    std::vector<double> losses{own_loss};
    expect_ok(group.allreduce(losses, collectives::Reduction::average));
    if (group.rank() == 0) loss = losses[0];
  });
  return loss;
}

// With error feedback the weights equal those of exact descent, except for the stored errors times
// the rate: an offset that does not add up. The loss is flat where descent ends (its gradient has a
// length of some 1e-2), so it may differ by about rate x error x 1e-2. The error of int8 is 1/254
// of a gradient, that of low_rank with 2 of 10 directions a few gradients: both far below a
// hundredth of the loss. Without feedback low_rank would never see the other directions.
TEST(Compressor, TrainingReachesTheLossOfTrainingWithoutCompression) {
  constexpr int ranks = 3, steps = 150;
  const double exact = train({}, ranks, steps);
  EXPECT_LT(exact, 0.75 * std::log(10.0)) << "training reduces the loss";
  for (const Compression compression : {Compression{CompressionKind::f16},
                                        {CompressionKind::bf16},
                                        {CompressionKind::int8},
                                        {CompressionKind::low_rank, 2}}) {
    const double loss = train(compression, ranks, steps);
    EXPECT_NEAR(loss, exact, 0.01 * exact) << to_string(compression);
  }
}

TEST(Compressor, RejectsInvalidCompressions) {
  run_ranks_in_memory(1, [&](collectives::Group& group) {
    Compressor compressor(group);
    std::vector<float> values(4);
    const std::vector tensors{in_place("w", values)};
    EXPECT_FALSE(
        compressor.allreduce(tensors, {CompressionKind::int8}, collectives::Reduction::maximum));
    EXPECT_FALSE(
        compressor.allreduce(tensors, {CompressionKind::none}, collectives::Reduction::sum));
    EXPECT_FALSE(
        compressor.allreduce(tensors, {CompressionKind::low_rank, 0}, collectives::Reduction::sum));
  });
}

}  // namespace
}  // namespace trainyard::gradients
