// Compares the results of pipelines, and of meshes of data, pipeline and tensor parallel ranks,
// with those of one process.
#include "parallel/pipeline.hpp"

#include <gtest/gtest.h>

#include <barrier>

#include "parallel/mesh.hpp"
#include "parallel/tensor_parallel.hpp"
#include "parallel/testing/network.hpp"
#include "parallel/zero.hpp"

namespace trainyard::parallel {
namespace {

using namespace testing;

TEST(DeviceMesh, PutsTensorInnermost) {
  const MeshShape shape{.data = 3, .pipeline = 2, .tensor = 4};
  EXPECT_EQ(position_of(shape, 0), (MeshPosition{0, 0, 0}));
  EXPECT_EQ(position_of(shape, 5), (MeshPosition{0, 1, 1}));
  EXPECT_EQ(position_of(shape, 23), (MeshPosition{2, 1, 3}));
  for (int rank = 0; rank < 24; ++rank) EXPECT_EQ(rank_at(shape, position_of(shape, rank)), rank);
}

TEST(DeviceMesh, SplitsAGroup) {
  on_ranks(12, [](collectives::Group& group) {
    const MeshShape shape{.data = 2, .pipeline = 3, .tensor = 2};
    auto mesh = DeviceMesh::make(group, shape);
    ASSERT_TRUE(mesh) << mesh.error().message;
    const MeshPosition at = position_of(shape, group.rank());
    EXPECT_EQ((*mesh)->position(), at);
    const auto members = [&](collectives::Group& part) {
      std::vector<int> ranks;
      const auto texts = part.all_gather(std::to_string(group.rank()));
      EXPECT_TRUE(texts);
      for (const std::string& each : *texts) ranks.push_back(std::stoi(each));
      return ranks;
    };
    EXPECT_EQ(members((*mesh)->data()),
              (std::vector<int>{rank_at(shape, {0, at.pipeline, at.tensor}),
                                rank_at(shape, {1, at.pipeline, at.tensor})}));
    EXPECT_EQ(members((*mesh)->tensor()),
              (std::vector<int>{rank_at(shape, {at.data, at.pipeline, 0}),
                                rank_at(shape, {at.data, at.pipeline, 1})}));
    const std::vector<int> stages = {rank_at(shape, {at.data, 0, at.tensor}),
                                     rank_at(shape, {at.data, 1, at.tensor}),
                                     rank_at(shape, {at.data, 2, at.tensor})};
    EXPECT_EQ(members((*mesh)->activations()), stages);
    EXPECT_EQ(members((*mesh)->gradients()), stages);
  });
}

TEST(DeviceMesh, RejectsAGroupOfAnotherSize) {
  on_ranks(2, [](collectives::Group& group) {
    const auto mesh = DeviceMesh::make(group, {.data = 2, .tensor = 2});
    ASSERT_FALSE(mesh);
    EXPECT_EQ(mesh.error().message, "invalid mesh 2 x 1 x 2: the group has 2 ranks");
    EXPECT_FALSE(DeviceMesh::make(group, {.data = -1, .pipeline = -2}));
  });
}

// -- the network in stages

// A Stage runs the layers of stage number `stage` of the network. `stages` is 1, 2 or 3.
struct Stage {
  Stage(int stage, int stages) : first(stage * 3 / stages), last((stage + 1) * 3 / stages) {}
  int first, last;
  Network network;

  std::vector<NamedTensor> parameters() const {
    const auto named = network.named();
    return {named.begin() + 2 * first, named.begin() + 2 * last};
  }
  at::Tensor run(at::Tensor values) const {
    for (int layer = first; layer < last; ++layer) {
      const at::Tensor &weight = network.parameters[size_t(2 * layer)],
                       &bias = network.parameters[size_t(2 * layer + 1)];
      values = at::linear(values, weight, bias);
      if (layer < 2) values = at::relu(values);
      if (layer == 0) values = at::relu(at::linear(values, weight, bias));
    }
    return values;
  }
  int64_t input_width() const { return first == 2 ? 24 : 16; }
};

constexpr PipelineSchedule kTestedSchedules[] = {PipelineSchedule::gpipe,
                                                 PipelineSchedule::one_forward_one_backward};

TEST(Pipeline, MatchesOneProcessBitForBit) {
  const OptimizerSettings sgd{.momentum = 0.9, .weight_decay = 1e-3};
  for (const PipelineSchedule schedule : kTestedSchedules)
    for (const int stages : {1, 2, 3})
      for (const int micro_batches : {1, 2, 5}) {
        const auto one = train_alone(sgd, micro_batches);
        on_ranks(stages, [&](collectives::Group& group) {
          auto mesh = *DeviceMesh::make(group, {.pipeline = stages});
          const Stage stage(group.rank(), stages);
          const bool is_first = group.rank() == 0, is_last = group.rank() + 1 == stages;
          Optimizer optimizer(sgd, stage.parameters());
          Pipeline pipeline(mesh->activations(), mesh->gradients(),
                            {schedule, micro_batches, {kPartRows, stage.input_width()}});
          for (int step = 0; step < kSteps; ++step) {
            for (const NamedTensor& each : stage.parameters())
              at::Tensor(each.tensor).mutable_grad() = at::zeros_like(each.tensor.detach());
            const auto loss = pipeline.run([&](const at::Tensor& input, int micro_batch) {
              const Part part = part_of(step, micro_batch);
              const at::Tensor output = stage.run(is_first ? part.input : input);
              return is_last ? at::cross_entropy_loss(output, part.labels) : output;
            });
            ASSERT_TRUE(loss) << loss.error().message;
            EXPECT_EQ(*loss > 0, is_last);
            optimizer.step(0.1, 1.0 / micro_batches);
          }
          for (const auto& [name, tensor] : stage.parameters())
            EXPECT_TRUE(at::equal(tensor.detach(), one[size_t(std::stoi(name))]))
                << to_string(schedule) << " parameter " << name;
          EXPECT_EQ(int(pipeline.most_held()),
                    activations_held(schedule, stages, group.rank(), micro_batches));
          // One message per micro-batch to each neighbour, in each direction.
          const auto bytes_of = [&](int64_t width) {
            return uint64_t(kSteps * micro_batches * kPartRows * width * 4);
          };
          const uint64_t in = is_first ? 0 : bytes_of(stage.input_width());
          const uint64_t out =
              is_last ? 0 : bytes_of(Stage(group.rank() + 1, stages).input_width());
          EXPECT_EQ(mesh->activations().counters().bytes, in + out);
          EXPECT_EQ(mesh->gradients().counters().bytes, in + out);
        });
      }
}

TEST(Pipeline, NamesAStageThatEnds) {
  for (const PipelineSchedule schedule : kTestedSchedules) {
    auto groups = collectives::join_in_memory(3);
    std::vector<std::unique_ptr<DeviceMesh>> meshes(3);
    std::barrier<> all_are_ready(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        at::set_num_threads(1);
        auto& mesh = meshes[size_t(rank)];
        mesh = *DeviceMesh::make(*groups[size_t(rank)], {.pipeline = 3});
        all_are_ready.arrive_and_wait();
        const Stage stage(rank, 3);
        Pipeline pipeline(mesh->activations(), mesh->gradients(),
                          {schedule, 4, {kPartRows, stage.input_width()}});
        const auto loss = pipeline.run([&](const at::Tensor& input, int micro_batch) {
          const Part part = part_of(0, micro_batch);
          if (rank == 1 && micro_batch == 2) {
            mesh->activations().abandon("the power is out");
            mesh->gradients().abandon("the power is out");
          }
          const at::Tensor output = stage.run(rank == 0 ? part.input : input);
          return rank == 2 ? at::cross_entropy_loss(output, part.labels) : output;
        });
        ASSERT_FALSE(loss);
        if (rank == 1) return;
        EXPECT_NE(loss.error().message.find("rank 1"), std::string::npos) << loss.error().message;
        EXPECT_NE(loss.error().message.find("the power is out"), std::string::npos);
      });
    for (std::thread& each : threads) each.join();
  }
}

// -- data x pipeline x tensor

// A Block is a perceptron with a column-parallel and a row-parallel layer. The network has two.
struct Block {
  explicit Block(uint64_t seed)
      : weight_1(parameter({20, 16}, seed)),
        bias_1(parameter({20}, seed + 1)),
        weight_2(parameter({16, 20}, seed + 2)),
        bias_2(parameter({16}, seed + 3)) {}
  at::Tensor run(const at::Tensor& in) const {
    return at::linear(at::linear(in, weight_1, bias_1).tanh(), weight_2, bias_2);
  }
  at::Tensor run(const at::Tensor& in, TensorGroup& group) const {
    return row_linear(column_linear(in, weight_1, bias_1, group).tanh(), weight_2, bias_2, group);
  }
  void divide(const TensorGroup& group) {
    const TensorRange range = range_of(20, group.rank(), group.size());
    const auto own = [&](const at::Tensor& whole, int64_t dimension) {
      return whole.detach()
          .narrow(dimension, range.begin, range.count)
          .clone(at::MemoryFormat::Contiguous)
          .requires_grad_(true);
    };
    weight_1 = own(weight_1, 0);
    bias_1 = own(bias_1, 0);
    weight_2 = own(weight_2, 1);
  }
  std::vector<NamedTensor> named() const {
    return {{"w1", weight_1}, {"b1", bias_1}, {"w2", weight_2}, {"b2", bias_2}};
  }
  at::Tensor weight_1, bias_1, weight_2, bias_2;
};

TEST(Mesh, ThreeDimensionsTrainLikeOneProcess) {
  constexpr int micro_batches = 3;
  const MeshShape shape{.data = 2, .pipeline = 2, .tensor = 2};
  const OptimizerSettings adam{.method = Method::adam};
  at::set_num_threads(1);
  const Block alone[2] = {Block(10), Block(20)};
  auto all = alone[0].named();
  for (const NamedTensor& each : alone[1].named()) all.push_back({each.name + "'", each.tensor});
  Optimizer optimizer(adam, all);
  for (int step = 0; step < kSteps; ++step) {
    for (const NamedTensor& each : all)
      at::Tensor(each.tensor).mutable_grad() = at::zeros_like(each.tensor.detach());
    for (int part = 0; part < shape.data * micro_batches; ++part) {
      const Part data = part_of(step, part);
      at::cross_entropy_loss(alone[1].run(alone[0].run(data.input)), data.labels).backward();
    }
    optimizer.step(0.01, 1.0 / (shape.data * micro_batches));
  }
  on_ranks(8, [&](collectives::Group& group) {
    auto mesh = *DeviceMesh::make(group, shape);
    const auto [data, stage, part] = mesh->position();
    TensorGroup tensor(mesh->tensor());
    Block block(stage == 0 ? 10 : 20), expected = alone[stage];
    block.divide(tensor);
    auto zero =
        *Zero::make(block.named(), mesh->data(), {ZeroStage::gradients, adam, {512, 512}, {}});
    Pipeline pipeline(mesh->activations(), mesh->gradients(),
                      {.micro_batches = micro_batches, .input_sizes = {kPartRows, 16}});
    for (int step = 0; step < kSteps; ++step) {
      zero->begin(micro_batches);
      const auto loss = pipeline.run(
          [&, first = data * micro_batches, stage = stage](const at::Tensor& input, int each) {
            const Part own = part_of(step, first + each);
            const at::Tensor output = block.run(stage == 0 ? own.input : input, tensor);
            return stage == 1 ? at::cross_entropy_loss(output, own.labels) : output;
          },
          [&] { return zero->end_pass(); });
      ASSERT_TRUE(loss) << loss.error().message;
      ASSERT_TRUE(tensor.result());
      ASSERT_TRUE(zero->step(0.01, 1.0 / (shape.data * micro_batches)));
    }
    expected.divide(tensor);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_LT(
          (block.named()[i].tensor - expected.named()[i].tensor).abs().max().item().toDouble(),
          1e-5)
          << "rank " << group.rank() << " " << block.named()[i].name;
    EXPECT_TRUE(group.barrier());  // the groups of the mesh end together
  });
}

}  // namespace
}  // namespace trainyard::parallel
