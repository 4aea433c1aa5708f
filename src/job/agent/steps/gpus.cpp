// The host's GPUs: what an earlier job may have left in their memory goes before the process starts, and what this one
// leaves goes after it has ended.
#include "agent/steps.hpp"
#include "base/log.hpp"

namespace trainyard::agent {
namespace {

// Nothing of the job holds them any more. One that cannot be cleared is not given to another job: the launcher and
// `doctor` read the mark.
void clear_claimed(StepContext& context) {
  for (const auto& device : context.claimed_gpus)
    if (auto cleared = context.world.gpu_marks->release(device); !cleared) {
      log(Level::warning, "agent", "a GPU is not cleared",
          {{"device", device}, {"why", cleared.error().message}});
      context.world.facts.say("the memory of " + device +
                              " could not be cleared, so no other job gets it: " + cleared.error().message);
    }
  context.claimed_gpus.clear();
}

}  // namespace

std::optional<Failure> claim_gpus(StepContext& context) {
  if (!context.world.gpu_marks) return {};
  for (const auto& device : context.place.devices) {
    if (!containers::is_gpu(device)) continue;
    // The job goes to other GPUs: this one is left out from now on.
    if (auto claimed = context.world.gpu_marks->claim(device); !claimed)
      return Failure{domain::Fault::lost, "what another job left in the memory of a GPU is still there: " +
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
