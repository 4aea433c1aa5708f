// Clears the memory of the host's GPUs: an earlier job's data before the process starts, and this
// job's data after its end.
#include "agent/steps.hpp"
#include "base/log.hpp"

namespace trainyard::agent {
namespace {

// Clears the GPUs after the job. One that cannot be cleared is marked: the launcher assigns it to
// no other job, and `trainyard doctor` reports it.
void clear_claimed(StepContext& context) {
  for (const auto& device : context.claimed_gpus)
    if (auto cleared = context.world.gpu_marks->release(device); !cleared) {
      log(Level::warning, "agent", "cannot clear a GPU",
          {{"device", device}, {"why", cleared.error().message}});
      context.world.facts.say(
          "the memory of " + device +
          " could not be cleared, so no other job gets it: " + cleared.error().message);
    }
  context.claimed_gpus.clear();
}

}  // namespace

std::optional<Failure> claim_gpus(StepContext& context) {
  if (!context.world.gpu_marks) return {};
  for (const auto& device : context.place.devices) {
    if (!containers::is_gpu(device)) continue;
    // The next attempt gets other GPUs: this one is not assigned from now on.
    if (auto claimed = context.world.gpu_marks->claim(device); !claimed)
      return Failure{domain::Fault::lost,
                     "data of another job in the memory of a GPU could not be cleared: " +
                         claimed.error().message};
    context.claimed_gpus.push_back(device);
  }
  return {};
}

std::optional<Failure> clear_gpus(StepContext& context) {
  clear_claimed(context);
  return {};
}

void release_gpus(StepContext& context) { clear_claimed(context); }

}  // namespace trainyard::agent
