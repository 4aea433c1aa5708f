// The host's GPUs: what an earlier job may have left in their memory goes before the process starts, and what this one
// leaves goes after it has ended.
#include "agent/steps.hpp"
#include "base/log.hpp"

namespace trainyard::agent {
namespace {

// Nothing of the job holds them any more. One that cannot be cleared is not given to another job: the launcher and
// `doctor` read the mark.
void clear_claimed(Site& site) {
  for (const auto& device : site.claimed_gpus)
    if (auto cleared = site.world.gpu_marks->release(device); !cleared) {
      log(Level::warning, "agent", "a GPU is not cleared",
          {{"device", device}, {"why", cleared.error().message}});
      site.world.facts.say("the memory of " + device +
                           " could not be cleared, so no other job gets it: " + cleared.error().message);
    }
  site.claimed_gpus.clear();
}

}  // namespace

std::optional<Failure> claim_gpus(Site& site) {
  if (!site.world.gpu_marks) return {};
  for (const auto& device : site.place.devices) {
    if (!host::is_gpu(device)) continue;
    // The job goes to other GPUs: this one is left out from now on.
    if (auto claimed = site.world.gpu_marks->claim(device); !claimed)
      return Failure{domain::Fault::lost, "what another job left in the memory of a GPU is still there: " +
                                              claimed.error().message};
    site.claimed_gpus.push_back(device);
  }
  return {};
}

std::optional<Failure> clear_gpus(Site& site) {
  clear_claimed(site);
  return {};
}

void release_gpus(Site& site) { clear_claimed(site); }

}  // namespace trainyard::agent
