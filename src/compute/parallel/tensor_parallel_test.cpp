// Compares divided layers with whole layers, on one rank and on several.
#include "parallel/tensor_parallel.hpp"

#include <gtest/gtest.h>

#include "parallel/testing/counted_groups.hpp"
#include "parallel/testing/network.hpp"

namespace trainyard::parallel {
namespace {

using namespace testing;

// Returns a leaf with this rank's part of a whole parameter, along a dimension.
at::Tensor part_of_parameter(const at::Tensor& whole, int64_t dimension, const TensorGroup& group) {
  const TensorRange range = range_of(whole.size(dimension), group.rank(), group.size());
  return whole.detach()
      .narrow(dimension, range.begin, range.count)
      .clone(at::MemoryFormat::Contiguous)
      .requires_grad_(true);
}

void expect_near(const at::Tensor& a, const at::Tensor& b, const char* what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  if (a.numel() == 0) return;
  EXPECT_LT((a - b).abs().max().item().toDouble(), 1e-5) << what;
}

void expect_part(const at::Tensor& gradient, const at::Tensor& whole, int64_t dimension,
                 const TensorGroup& group, const char* what) {
  const TensorRange range = range_of(whole.size(dimension), group.rank(), group.size());
  expect_near(gradient, whole.narrow(dimension, range.begin, range.count), what);
}

TEST(TensorRange, DividesAsEvenlyAsPossible) {
  for (const int64_t extent : {0, 1, 5, 12})
    for (int ranks = 1; ranks <= 7; ++ranks) {
      int64_t end = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const TensorRange range = range_of(extent, rank, ranks);
        EXPECT_EQ(range.begin, end);
        EXPECT_TRUE(range.count == extent / ranks || range.count == extent / ranks + 1);
        end += range.count;
      }
      EXPECT_EQ(end, extent);
    }
}

// 20, 13 and 10 do not divide by 3 ranks.
struct WholePerceptron {
  at::Tensor table = parameter({13, 20}, 1), weight_1 = parameter({10, 20}, 2),
             bias_1 = parameter({10}, 3), weight_2 = parameter({20, 10}, 4),
             bias_2 = parameter({20}, 5);
  at::Tensor run(const at::Tensor& words) const {
    const at::Tensor input = at::embedding(table, words);
    return at::linear(at::linear(input, weight_1, bias_1).tanh(), weight_2, bias_2) + input;
  }
};

struct DividedPerceptron {
  DividedPerceptron(const WholePerceptron& whole, TensorGroup& group)
      : group(group),
        table(part_of_parameter(whole.table, 0, group)),
        weight_1(part_of_parameter(whole.weight_1, 0, group)),
        bias_1(part_of_parameter(whole.bias_1, 0, group)),
        weight_2(part_of_parameter(whole.weight_2, 1, group)),
        bias_2(whole.bias_2.detach().clone().requires_grad_(true)) {}
  at::Tensor run(const at::Tensor& words) const {
    const at::Tensor input = vocabulary_embedding(words, table, 13, group);
    const at::Tensor hidden = column_linear(input, weight_1, bias_1, group).tanh();
    return row_linear(hidden, weight_2, bias_2, group) + input;
  }
  TensorGroup& group;
  at::Tensor table, weight_1, bias_1, weight_2, bias_2;
};

at::Tensor words_of(uint64_t seed) {
  SeededRandom random(seed);
  at::Tensor words = at::empty({3, 4}, at::kLong);
  for (int64_t i = 0; i < words.numel(); ++i)
    static_cast<int64_t*>(words.data_ptr())[i] = int64_t(random.below(13));
  return words;
}

TEST(TensorParallel, LayersAndGradientsMatchTheWholeModel) {
  for (const int ranks : {1, 2, 3, 4, 12})  // 12: some ranks have no column
    on_ranks(ranks, [](collectives::Group& ranks_group) {
      TensorGroup group(ranks_group);
      const WholePerceptron whole;
      const DividedPerceptron divided(whole, group);
      const at::Tensor words = words_of(7), weights = random_tensor({3, 4, 20}, 8);
      const at::Tensor expected = whole.run(words), output = divided.run(words);
      expect_near(output, expected, "output");
      (expected * weights).sum().backward();
      (output * weights).sum().backward();
      ASSERT_TRUE(group.result());
      expect_part(divided.table.grad(), whole.table.grad(), 0, group, "table");
      expect_part(divided.weight_1.grad(), whole.weight_1.grad(), 0, group, "weight 1");
      expect_part(divided.bias_1.grad(), whole.bias_1.grad(), 0, group, "bias 1");
      expect_part(divided.weight_2.grad(), whole.weight_2.grad(), 1, group, "weight 2");
      expect_near(divided.bias_2.grad(), whole.bias_2.grad(), "bias 2");
    });
}

TEST(TensorParallel, GathersAndDividesColumns) {
  for (const int ranks : {1, 2, 3, 7})
    on_ranks(ranks, [](collectives::Group& ranks_group) {
      TensorGroup group(ranks_group);
      const at::Tensor whole = parameter({2, 3, 5}, 1), weights = random_tensor({2, 3, 5}, 2);
      const at::Tensor own = own_columns(whole, group);
      const at::Tensor again = gather_columns(own, 5, group);
      EXPECT_TRUE(at::equal(again, whole));
      (again * weights).sum().backward();
      ASSERT_TRUE(group.result());
      EXPECT_TRUE(at::equal(whole.grad(), weights));
    });
}

TEST(TensorParallel, TrainsLikeTheWholeModel) {
  for (const int ranks : {2, 3})
    on_ranks(ranks, [](collectives::Group& ranks_group) {
      TensorGroup group(ranks_group);
      const WholePerceptron whole;
      const DividedPerceptron divided(whole, group);
      Optimizer all({}, {{"t", whole.table},
                         {"w1", whole.weight_1},
                         {"b1", whole.bias_1},
                         {"w2", whole.weight_2},
                         {"b2", whole.bias_2}});
      Optimizer parts({}, {{"t", divided.table},
                           {"w1", divided.weight_1},
                           {"b1", divided.bias_1},
                           {"w2", divided.weight_2},
                           {"b2", divided.bias_2}});
      const at::Tensor before = whole.table.detach().clone();
      for (uint64_t step = 0; step < kSteps; ++step) {
        for (const at::Tensor& each :
             {whole.table, whole.weight_1, whole.bias_1, whole.weight_2, whole.bias_2,
              divided.table, divided.weight_1, divided.bias_1, divided.weight_2, divided.bias_2})
          at::Tensor(each).mutable_grad() = at::zeros_like(each.detach());
        const at::Tensor words = words_of(step), weights = random_tensor({3, 4, 20}, step);
        (whole.run(words).tanh() * weights).sum().backward();
        (divided.run(words).tanh() * weights).sum().backward();
        ASSERT_TRUE(group.result());
        all.step(0.02, 1);
        parts.step(0.02, 1);
      }
      EXPECT_GT((whole.table - before).abs().max().item().toDouble(), 0.01);
      expect_part(divided.table, whole.table, 0, group, "table");
      expect_part(divided.weight_1, whole.weight_1, 0, group, "weight 1");
      expect_part(divided.weight_2, whole.weight_2, 1, group, "weight 2");
      expect_near(divided.bias_2, whole.bias_2, "bias 2");
    });
}

TEST(TensorParallel, SendsTheBytesOfItsFormula) {
  constexpr int64_t rows = 64, wide = 256;
  for (const int ranks : {2, 4})
    on_counted_ranks(ranks, [&](collectives::Group& ranks_group, std::atomic<uint64_t>& bytes) {
      TensorGroup group(ranks_group);
      const at::Tensor weight_1 = part_of_parameter(random_tensor({wide, wide}, 1), 0, group);
      const at::Tensor weight_2 = part_of_parameter(random_tensor({wide, wide}, 2), 1, group);
      const at::Tensor input = parameter({rows, wide}, 3);
      const auto allreduce = size_t(rows * wide * 4 * 2 * (ranks - 1) / ranks);
      ASSERT_TRUE(ranks_group.barrier());
      uint64_t before = bytes;
      const at::Tensor hidden = column_linear(input, weight_1, {}, group);
      EXPECT_EQ(bytes, before);
      const at::Tensor output = row_linear(hidden.tanh(), weight_2, {}, group);
      expect_within_5_percent(bytes - before, allreduce);
      before = bytes;
      output.sum().backward();
      expect_within_5_percent(bytes - before, allreduce);
      before = bytes;
      gather_columns(hidden.detach(), wide, group);
      expect_within_5_percent(bytes - before, allreduce / 2);
      ASSERT_TRUE(group.result());
    });
}

TEST(TensorParallel, NamesARankThatEndsDuringAStep) {
  auto groups = collectives::join_in_memory(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      at::set_num_threads(1);
      TensorGroup group(*groups[size_t(rank)]);
      const WholePerceptron whole;
      const DividedPerceptron divided(whole, group);
      const at::Tensor output = divided.run(words_of(1));
      if (rank == 1) return groups[1]->abandon("the power is out");
      output.sum().backward();
      ASSERT_FALSE(group.result());
      EXPECT_NE(group.result().error().message.find("rank 1"), std::string::npos);
      EXPECT_NE(group.result().error().message.find("the power is out"), std::string::npos);
    });
  for (std::thread& each : ranks) each.join();
}

}  // namespace
}  // namespace trainyard::parallel
