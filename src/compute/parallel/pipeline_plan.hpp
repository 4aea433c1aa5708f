// Decides the order in which a stage of a pipeline computes its micro-batches.
//
// A model is divided into stages, one for each rank, and the batch of a step into micro-batches
// that pass through them: forward through all stages, then backward. For S stages, M micro-batches
// and equal times of all stages:
//
//   gpipe            all forward passes, then all backward passes. A stage holds the activations of
//                    M micro-batches.
//   one_forward_one_backward ("1f1b")   a stage begins with min(M, S - stage - 1) forward passes,
//                    then alternates one forward and one backward pass, and ends with the backward
//                    passes that are left. It holds activations of min(M, S - stage) micro-batches.
//
// In both schedules a stage computes the backward passes in the order of the micro-batches, so the
// sums of gradients equal those of one process that computes one micro-batch after another.
//
// Bubble: if a stage takes the times f and b for the forward and the backward pass of a
// micro-batch, a step takes (M + S - 1) (f + b) in both schedules. A stage computes for M (f + b),
// and is idle for the rest, which is (S - 1) / (M + S - 1) of the time.
//
// Threads: pure functions. Errors: invalid, from parse_pipeline_schedule().
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::parallel {

enum class PipelineSchedule : uint8_t { gpipe, one_forward_one_backward };
std::string_view to_string(PipelineSchedule schedule);
Result<PipelineSchedule> parse_pipeline_schedule(std::string_view text);

struct PipelineOperation {
  bool forward = true;  // else backward
  int micro_batch = 0;

  bool operator==(const PipelineOperation&) const = default;
};

// Returns a stage's passes, in order. Requires: 0 <= stage < stages, micro_batches >= 1.
std::vector<PipelineOperation> plan_pipeline(PipelineSchedule schedule, int stages, int stage,
                                             int micro_batches);

// Returns the largest number of micro-batches whose activations a stage holds at the same time.
int activations_held(PipelineSchedule schedule, int stages, int stage, int micro_batches);

// Returns the part of a step for which a stage is idle, 0 to 1.
double bubble(int stages, int micro_batches);

}  // namespace trainyard::parallel
