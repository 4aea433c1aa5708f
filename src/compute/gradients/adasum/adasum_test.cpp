// Compares the adaptive sum with its reference, bit for bit, and checks its guarantees about
// directions.
#include "gradients/adasum/adasum.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "collectives/testing/circle.hpp"
#include "collectives/testing/groups.hpp"

namespace trainyard::gradients {
namespace {

using collectives::testing::awkward_inputs;
using collectives::testing::expect_ok;
using collectives::testing::run_ranks_in_memory;

TEST(Adasum, EqualsTheReferenceBitForBit) {
  const std::vector<std::vector<size_t>> cuts{{}, {0}, {1}, {5}, {3, 0, 7, 1}, {257, 1, 100}};
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const collectives::Type type : {collectives::Type::f64, collectives::Type::f32,
                                         collectives::Type::f16, collectives::Type::bf16}) {
      run_ranks_in_memory(ranks, [&](collectives::Group& group) {
        AdasumWorkspace workspace;
        for (const auto& tensors : cuts) {
          size_t elements = 0;
          for (const size_t size : tensors) elements += size;
          const auto inputs = awkward_inputs(type, ranks, elements);
          auto values = inputs[size_t(group.rank())];
          expect_ok(adasum(group, {values.data(), elements, type}, tensors, workspace));
          EXPECT_TRUE(values == reference::adasum(type, inputs, tensors))
              << ranks << " ranks, " << to_string(type) << ", " << elements << " elements";
        }
      });
    }
  }
}

TEST(Adasum, EqualsTheReferenceWithSeventeenRanks) {
  run_ranks_in_memory(17, [&](collectives::Group& group) {
    AdasumWorkspace workspace;
    const std::vector<size_t> tensors{33, 64, 900};
    const auto inputs = awkward_inputs(collectives::Type::f32, 17, 997);
    auto values = inputs[size_t(group.rank())];
    expect_ok(adasum(group, {values.data(), 997, collectives::Type::f32}, tensors, workspace));
    EXPECT_TRUE(values == reference::adasum(collectives::Type::f32, inputs, tensors));
  });
}

TEST(Adasum, AddsOrthogonalGradientsAndAveragesEqualOnes) {
  for (const int ranks : {2, 3, 4, 6, 8}) {
    run_ranks_in_memory(ranks, [&](collectives::Group& group) {
      AdasumWorkspace workspace;
      // In the first tensor each rank has its own direction; in the second all ranks have the same.
      const std::vector<size_t> tensors{8, 5};
      std::vector<double> values(13, 2.5);
      for (int i = 0; i < 8; ++i) values[size_t(i)] = i == group.rank() ? 3.0 : 0.0;
      expect_ok(adasum(group, collectives::buffer_view(std::span(values)), tensors, workspace));
      for (int i = 0; i < 8; ++i) EXPECT_EQ(values[size_t(i)], i < ranks ? 3.0 : 0.0);
      for (size_t i = 8; i < 13; ++i) EXPECT_EQ(values[i], 2.5);
    });
  }
}

TEST(Adasum, HasALengthBetweenTheAverageAndTheSum) {
  run_ranks_in_memory(4, [&](collectives::Group& group) {
    AdasumWorkspace workspace;
    SeededRandom random(uint64_t(group.rank()) + 1);
    std::vector<float> values;
    for (int i = 0; i < 1000; ++i) values.push_back(1.0f + float(random.below(1000)) / 1000.0f);
    auto sum = values, average = values;
    expect_ok(adasum(group, collectives::buffer_view(std::span(values)), std::vector<size_t>{1000},
                     workspace));
    expect_ok(group.allreduce(sum));
    expect_ok(group.allreduce(average, collectives::Reduction::average));
    const auto length = [](const std::vector<float>& vector) {
      double squares = 0;
      for (const float value : vector) squares += double(value) * double(value);
      return std::sqrt(squares);
    };
    EXPECT_GT(length(values), length(average));
    EXPECT_LT(length(values), length(sum));
  });
}

TEST(Adasum, IgnoresZerosAndRejectsIntegers) {
  run_ranks_in_memory(2, [&](collectives::Group& group) {
    AdasumWorkspace workspace;
    std::vector<float> values(10, group.rank() == 0 ? 0.0f : 1.5f);
    expect_ok(adasum(group, collectives::buffer_view(std::span(values)), std::vector<size_t>{10},
                     workspace));
    EXPECT_EQ(values, std::vector<float>(10, 1.5f));
    std::vector<int32_t> integers(2);
    EXPECT_FALSE(adasum(group, collectives::buffer_view(std::span(integers)),
                        std::vector<size_t>{2}, workspace));
    EXPECT_FALSE(adasum(group, collectives::buffer_view(std::span(values)), std::vector<size_t>{9},
                        workspace));
  });
}

}  // namespace
}  // namespace trainyard::gradients
