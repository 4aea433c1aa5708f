// Compares the orders of passes with tables, and times, memory and messages with simulations of all
// stages.
#include "parallel/pipeline_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace trainyard::parallel {
namespace {

constexpr PipelineSchedule kBothSchedules[] = {PipelineSchedule::gpipe,
                                               PipelineSchedule::one_forward_one_backward};

// Formats passes as "F0 F1 B0 B1".
std::string text_of(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  std::string text;
  for (const PipelineOperation& each : plan_pipeline(schedule, stages, stage, micro_batches))
    text += (text.empty() ? "" : " ") + std::string(each.forward ? "F" : "B") +
            std::to_string(each.micro_batch);
  return text;
}

TEST(PipelinePlan, EqualsTheTables) {
  const auto gpipe = PipelineSchedule::gpipe;
  const auto one = PipelineSchedule::one_forward_one_backward;
  EXPECT_EQ(text_of(gpipe, 1, 0, 2), "F0 F1 B0 B1");
  EXPECT_EQ(text_of(gpipe, 3, 2, 3), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(text_of(one, 1, 0, 3), "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(text_of(one, 4, 0, 4), "F0 F1 F2 F3 B0 B1 B2 B3");
  EXPECT_EQ(text_of(one, 4, 0, 6), "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  EXPECT_EQ(text_of(one, 4, 2, 6), "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
  EXPECT_EQ(text_of(one, 4, 3, 3), "F0 B0 F1 B1 F2 B2");
  EXPECT_EQ(text_of(one, 4, 0, 2), "F0 F1 B0 B1");
  EXPECT_EQ(to_string(one), "1f1b");
  EXPECT_EQ(*parse_pipeline_schedule("gpipe"), gpipe);
  EXPECT_FALSE(parse_pipeline_schedule("zero"));
}

TEST(PipelinePlan, HoldsTheDocumentedNumberOfActivations) {
  for (const PipelineSchedule schedule : kBothSchedules)
    for (int stages = 1; stages <= 6; ++stages)
      for (int stage = 0; stage < stages; ++stage)
        for (int micro_batches = 1; micro_batches <= 9; ++micro_batches) {
          int held = 0, most = 0, forward = 0, backward = 0;
          for (const auto& each : plan_pipeline(schedule, stages, stage, micro_batches)) {
            EXPECT_EQ(each.micro_batch, each.forward ? forward++ : backward++);
            held += each.forward ? 1 : -1;
            EXPECT_GE(held, 0);
            most = std::max(most, held);
          }
          EXPECT_EQ(forward, micro_batches);
          EXPECT_EQ(backward, micro_batches);
          EXPECT_EQ(most, activations_held(schedule, stages, stage, micro_batches));
          EXPECT_LE(most, schedule == PipelineSchedule::gpipe
                              ? micro_batches
                              : std::min(micro_batches, stages - stage));
        }
}

// Returns the time of a step if messages take no time.
int simulate(PipelineSchedule schedule, int stages, int micro_batches, int forward_time,
             int backward_time) {
  std::vector<std::vector<PipelineOperation>> plans;
  for (int stage = 0; stage < stages; ++stage)
    plans.push_back(plan_pipeline(schedule, stages, stage, micro_batches));
  std::vector<size_t> next(size_t(stages), 0);
  std::vector<int> free(size_t(stages), 0);
  std::map<std::pair<int, int>, int> forward_end, backward_end;  // by stage and micro-batch
  for (bool moving = true; moving;) {
    moving = false;
    for (int stage = 0; stage < stages; ++stage) {
      const auto s = size_t(stage);
      if (next[s] == plans[s].size()) continue;
      const auto [forward, micro_batch] = plans[s][next[s]];
      int ready = 0;
      if (forward ? stage > 0 : stage + 1 < stages) {
        const auto& ends = forward ? forward_end : backward_end;
        const auto found = ends.find({forward ? stage - 1 : stage + 1, micro_batch});
        if (found == ends.end()) continue;
        ready = found->second;
      }
      free[s] = std::max(free[s], ready) + (forward ? forward_time : backward_time);
      (forward ? forward_end : backward_end)[{stage, micro_batch}] = free[s];
      ++next[s];
      moving = true;
    }
  }
  for (size_t s = 0; s < size_t(stages); ++s) EXPECT_EQ(next[s], plans[s].size()) << "blocked";
  return *std::max_element(free.begin(), free.end());
}

TEST(PipelinePlan, IsIdleForItsBubble) {
  for (const PipelineSchedule schedule : kBothSchedules)
    for (int stages = 1; stages <= 6; ++stages)
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches)
        for (const auto& [forward, backward] : {std::pair{1, 1}, {1, 2}, {3, 5}}) {
          const int step = simulate(schedule, stages, micro_batches, forward, backward);
          EXPECT_EQ(step, (micro_batches + stages - 1) * (forward + backward));
          const double busy = micro_batches * (forward + backward);
          EXPECT_NEAR(1 - busy / step, bubble(stages, micro_batches), 1e-12);
        }
  EXPECT_DOUBLE_EQ(bubble(4, 8), 3.0 / 11);
}

// A send or a receive of a stage in one group. Groups run them one after another.
struct Message {
  bool send;
  int peer, micro_batch;
};

// Runs the sends and receives of pipeline.cpp with connections without buffers: a send ends only
// when its receiver has reached the receive. Returns true if all stages end.
bool ends_without_buffers(PipelineSchedule schedule, int stages, int micro_batches) {
  std::vector<std::vector<PipelineOperation>> plans;
  for (int stage = 0; stage < stages; ++stage)
    plans.push_back(plan_pipeline(schedule, stages, stage, micro_batches));
  std::vector<size_t> next(size_t(stages), 0);
  std::vector<bool> receiving(size_t(stages), false);
  using Queues = std::vector<std::deque<Message>>;  // by stage
  Queues activations{size_t(stages)}, gradients{size_t(stages)};
  const auto deliver = [&](Queues& queues) {
    for (int stage = 0; stage < stages; ++stage) {
      auto& sender = queues[size_t(stage)];
      if (sender.empty() || !sender.front().send) continue;
      auto& receiver = queues[size_t(sender.front().peer)];
      if (receiver.empty() || receiver.front().send || receiver.front().peer != stage) continue;
      EXPECT_EQ(receiver.front().micro_batch, sender.front().micro_batch);
      receiving[size_t(sender.front().peer)] = false;
      sender.pop_front();
      receiver.pop_front();
      return true;
    }
    return false;
  };
  // Returns true if the stage made progress.
  const auto advance = [&](int stage) {
    const auto s = size_t(stage);
    if (receiving[s] || next[s] == 2 * plans[s].size()) return false;
    const auto [forward, micro_batch] = plans[s][next[s] / 2];
    Queues& queues = forward ? activations : gradients;
    const int from = forward ? stage - 1 : stage + 1, to = forward ? stage + 1 : stage - 1;
    const bool sends = next[s]++ % 2 == 1;  // the second half of an operation
    const int peer = sends ? to : from;
    if (peer < 0 || peer >= stages) return true;
    queues[s].push_back({sends, peer, micro_batch});
    receiving[s] = !sends;
    return true;
  };
  for (bool moving = true; moving;) {
    moving = deliver(activations) || deliver(gradients);
    for (int stage = 0; stage < stages; ++stage) moving = advance(stage) || moving;
  }
  for (size_t s = 0; s < size_t(stages); ++s)
    if (next[s] != 2 * plans[s].size() || !activations[s].empty() || !gradients[s].empty())
      return false;
  return true;
}

TEST(PipelinePlan, NeverBlocksWithoutBuffers) {
  for (const PipelineSchedule schedule : kBothSchedules)
    for (int stages = 1; stages <= 7; ++stages)
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches)
        EXPECT_TRUE(ends_without_buffers(schedule, stages, micro_batches))
            << to_string(schedule) << " " << stages << " " << micro_batches;
}

}  // namespace
}  // namespace trainyard::parallel
