// Kills a rank with SIGKILL in the middle of training. In every strategy, the other processes must
// end with an error that names it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "collectives/testing/groups.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline.hpp"
#include "parallel/sharded_model.hpp"
#include "parallel/tensor_parallel.hpp"
#include "parallel/testing/network.hpp"
#include "parallel/zero.hpp"

namespace trainyard::parallel {
namespace {

using namespace testing;

constexpr int kRanks = 3, kKilledRank = 1, kKilledStep = 3;
constexpr int kStepsMax = 1'000'000;  // never reached: the group ends before

// The point of a step at which a rank dies.
enum class Moment { before_backward, before_step };

void maybe_die(const collectives::Group& group, int step, Moment now, Moment when) {
  if (group.rank() == kKilledRank && step == kKilledStep && now == when) raise(SIGKILL);
}

// Train until the group ends, and return its error.
using Strategy = std::function<Result<void>(collectives::Group&, Moment)>;

Result<void> train_with_zero(collectives::Group& group, ZeroStage stage, Moment when) {
  const Network network;
  auto zero = TRY(
      Zero::make(network.named(), group, {stage, {}, {.first_bytes = 1024, .bytes = 2048}, {}}));
  for (int step = 0; step < kStepsMax; ++step) {
    zero->begin();
    const Part part = part_of(step % 10, group.rank());
    const at::Tensor loss = network.loss(part.input, part.labels);
    maybe_die(group, step, Moment::before_backward, when);
    loss.backward();
    TRY(zero->end_pass());
    maybe_die(group, step, Moment::before_step, when);
    TRY(zero->step(0.01, 1));
  }
  return ok();
}

Result<void> train_divided(collectives::Group& group, Moment when) {
  std::vector<at::Tensor> layers;
  ShardedModel model(group, {});
  for (uint64_t i = 0; i < 4; ++i) {
    layers.push_back(parameter({16, 16}, i));
    TRY(model.add_unit({{"layer" + std::to_string(i), layers.back()}}));
  }
  for (int step = 0; step < kStepsMax; ++step) {
    model.begin();
    at::Tensor values = random_tensor({4, 16}, uint64_t(step));
    for (size_t i = 0; i < layers.size(); ++i)
      values = TRY(model.run(
          i, values, [&](const at::Tensor& in) { return at::linear(in, layers[i]).tanh(); }));
    maybe_die(group, step, Moment::before_backward, when);
    values.sum().backward();
    TRY(model.end_pass());
    maybe_die(group, step, Moment::before_step, when);
    TRY(model.step(0.01, 1));
  }
  return ok();
}

Result<void> train_in_stages(collectives::Group& group, PipelineSchedule schedule, Moment when) {
  auto mesh = TRY(DeviceMesh::make(group, {.pipeline = kRanks}));
  const at::Tensor layer = parameter({16, 16}, uint64_t(group.rank()));
  Pipeline pipeline(mesh->activations(), mesh->gradients(), {schedule, 4, {4, 16}});
  for (int step = 0; step < kStepsMax; ++step) {
    const auto loss = pipeline.run([&](const at::Tensor& input, int micro_batch) {
      if (micro_batch == 2) maybe_die(group, step, Moment::before_backward, when);
      const at::Tensor output =
          at::linear(group.rank() == 0 ? random_tensor({4, 16}, 1) : input, layer).tanh();
      return group.rank() + 1 == kRanks ? output.sum() : output;
    });
    if (!loss) return loss.error();
    maybe_die(group, step, Moment::before_step, when);
  }
  return ok();
}

Result<void> train_in_columns(collectives::Group& group, Moment when) {
  TensorGroup tensor(group);
  const int64_t own = range_of(16, group.rank(), group.size()).count;
  const at::Tensor columns = parameter({own, 16}, 1), rows = parameter({16, own}, 2);
  for (int step = 0; step < kStepsMax; ++step) {
    const at::Tensor hidden = column_linear(parameter({4, 16}, 3), columns, {}, tensor);
    const at::Tensor output = row_linear(hidden.tanh(), rows, {}, tensor);
    maybe_die(group, step, Moment::before_backward, when);
    output.sum().backward();
    TRY(Result<void>(tensor.result()));
    maybe_die(group, step, Moment::before_step, when);
  }
  return ok();
}

enum ExitCode { named = 0, not_named = 1, no_error = 2, no_group = 3 };

[[noreturn]] void run_rank(const collectives::TcpOptions& options, const Strategy& strategy,
                           Moment when) {
  at::set_num_threads(1);
  auto group = collectives::join_over_tcp(options);
  if (!group) _exit(no_group);
  const auto result = strategy(**group, when);
  if (result) _exit(no_error);
  if (result.error().message.find("rank 1") != std::string::npos) _exit(named);
  (void)!write(STDERR_FILENO, result.error().message.data(), result.error().message.size());
  _exit(not_named);
}

// Returns the status of waitpid. A process that does not end in time is killed.
int status_of(pid_t process) {
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(process, SIGKILL);
    std::this_thread::sleep_for(5ms);
  }
  return status;
}

void expect_error_by_name(const Strategy& strategy) {
  for (const Moment when : {Moment::before_backward, Moment::before_step}) {
    const auto endpoints = collectives::testing::endpoints(kRanks);
    std::vector<pid_t> processes;
    for (int rank = 0; rank < kRanks; ++rank) {
      const pid_t process = fork();
      ASSERT_GE(process, 0);
      if (process == 0) run_rank(collectives::testing::options(endpoints, rank), strategy, when);
      processes.push_back(process);
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      const int status = status_of(processes[size_t(rank)]);
      if (rank == kKilledRank) {
        EXPECT_TRUE(WIFSIGNALED(status));
      } else {
        EXPECT_TRUE(WIFEXITED(status)) << "rank " << rank << " died by signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), named) << "rank " << rank;
      }
    }
  }
}

TEST(KilledRank, IsNamedByZero) {
  for (const ZeroStage stage : {ZeroStage::optimizer_state, ZeroStage::gradients})
    expect_error_by_name([stage](collectives::Group& group, Moment when) {
      return train_with_zero(group, stage, when);
    });
}

TEST(KilledRank, IsNamedByAPipeline) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward})
    expect_error_by_name([schedule](collectives::Group& group, Moment when) {
      return train_in_stages(group, schedule, when);
    });
}

TEST(KilledRank, IsNamedByTensorParallelLayers) { expect_error_by_name(train_in_columns); }

TEST(KilledRank, IsNamedByAShardedModel) { expect_error_by_name(train_divided); }

}  // namespace
}  // namespace trainyard::parallel
