#include "parallel/pipeline_plan.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/enum_table.hpp"

namespace trainyard::parallel {
namespace {

constexpr EnumTable<PipelineSchedule> kSchedules{
    "pipeline schedule",
    {{PipelineSchedule::gpipe, "gpipe"}, {PipelineSchedule::one_forward_one_backward, "1f1b"}}};

// Returns the number of forward passes before the first backward pass.
int forwards_first(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  CHECK(stage >= 0 && stage < stages && micro_batches >= 1, "a stage of the pipeline");
  if (schedule == PipelineSchedule::gpipe) return micro_batches;
  return std::min(micro_batches, stages - stage);
}

}  // namespace

std::string_view to_string(PipelineSchedule schedule) { return kSchedules.text(schedule); }
Result<PipelineSchedule> parse_pipeline_schedule(std::string_view text) {
  return kSchedules.parse(text);
}

std::vector<PipelineOperation> plan_pipeline(PipelineSchedule schedule, int stages, int stage,
                                             int micro_batches) {
  int forward = forwards_first(schedule, stages, stage, micro_batches);
  std::vector<PipelineOperation> operations;
  for (int i = 0; i < forward; ++i) operations.push_back({true, i});
  for (int i = 0; i < micro_batches; ++i) {
    operations.push_back({false, i});
    if (forward < micro_batches) operations.push_back({true, forward++});
  }
  return operations;
}

int activations_held(PipelineSchedule schedule, int stages, int stage, int micro_batches) {
  return forwards_first(schedule, stages, stage, micro_batches);
}

double bubble(int stages, int micro_batches) {
  return double(stages - 1) / double(micro_batches + stages - 1);
}

}  // namespace trainyard::parallel
