// The host's own directories, empty: what a former life of this directory left goes first.
#include "agent/steps.hpp"
#include "base/log.hpp"
#include "host/files.hpp"
#include "host/mounts.hpp"

namespace trainyard::agent {

std::optional<Failure> make_workspace(Site& site) {
  remove_workspace(site);
  if (site.died_before) {
    return Failure{domain::Fault::internal, "the agent of this host died while it ran the job"};
  }
  for (const char* name : {"ml", "etc"}) {
    if (auto made = host::make_directories(site.path(name)); !made)
      return failure_of(made.error(), "making the host's directories");
  }
  return {};
}

void remove_workspace(Site& site) {
  if (auto removed = site.world.remove_container(site.container_id(), site.path("bundle")); !removed) {
    log(Level::warning, "agent", "what is left of the container cannot be removed",
        {{"error", removed.error().message}});
  }
  // Before anything is removed: what is mounted there is not ours to remove.
  if (auto unmounted = host::unmount_below(site.path(kFileSystems)); !unmounted) {
    log(Level::warning, "agent", "a file system cannot be unmounted", {{"error", unmounted.error().message}});
  }
  for (const char* name : {"ml", "etc", "image", "checkpoints", "entry", kFileSystems}) {
    if (auto removed = host::remove_all(site.path(name)); !removed) {
      log(Level::warning, "agent", "a directory cannot be removed", {{"error", removed.error().message}});
    }
  }
}

}  // namespace trainyard::agent
