// The host's own directories, empty: what a former life of this directory left goes first.
#include "agent/steps.hpp"
#include "base/log.hpp"
#include "host/files.hpp"
#include "host/mounts.hpp"
#include "host/volume.hpp"

namespace trainyard::agent {
namespace {

void remove_directories(Site& site, std::initializer_list<const char*> names) {
  if (auto removed = site.world.remove_container(site.container_id(), site.path("bundle")); !removed) {
    log(Level::warning, "agent", "what is left of the container cannot be removed",
        {{"error", removed.error().message}});
  }
  for (const char* name : names) {
    if (auto removed = host::remove_all(site.path(name)); !removed) {
      log(Level::warning, "agent", "a directory cannot be removed", {{"error", removed.error().message}});
    }
  }
}

}  // namespace

std::optional<Failure> make_workspace(Site& site) {
  // "ml" is being mounted over, where volumes have a size. Of a directory that is new there is nothing to remove.
  if (site.died_before || host::exists(site.path("etc")))
    remove_directories(site, {"etc", "image", "checkpoints", "entry", kVolumesBeside,
                              site.world.await_volume ? "etc" : "ml"});
  if (site.died_before) {
    return Failure{domain::Fault::lost, "the agent of this host died while it ran the job"};
  }
  for (const char* name : {"ml", "etc"}) {
    if (auto made = host::make_directories(site.path(name)); !made)
      return failure_of(made.error(), "making the host's directories");
  }
  return {};
}

// VolumeSizeInGB, or a Batch job's ephemeralStorage. A machine that cannot limit it says so in the job's log. What is
// mounted at "ml" from now on stays.
std::optional<Failure> await_volume(Site& site) {
  if (site.world.await_volume) {
    const auto made = site.world.await_volume();
    site.volume_limited = static_cast<bool>(made);
    if (!made)
      site.world.facts.say(std::string(size_member(site)) +
                           " is not enforced on this machine: " + made.error().message);
  }
  auto opened = Tree::open(site.ml());
  if (!opened) return failure_of(opened.error(), "opening the host's directories");
  site.ml_tree = *std::move(opened);
  return {};
}

void remove_workspace(Site& site) {
  site.ml_tree.reset();  // else the volume stays busy
  if (site.world.await_volume) (void)site.world.await_volume();
  // Before anything is removed: what is mounted there is not ours to remove. A Batch job has nothing but what it asked
  // for, and looking through a machine's mounts takes its time.
  if (host::exists(site.path(kFileSystems)))
    if (auto unmounted = host::unmount_below(site.path(kFileSystems)); !unmounted) {
      log(Level::warning, "agent", "a file system cannot be unmounted",
          {{"error", unmounted.error().message}});
    }
  if (!site.order.spec.plain())
    if (auto unmounted = host::unmount_below(site.ml()); !unmounted) {
      log(Level::warning, "agent", "the volume cannot be unmounted", {{"error", unmounted.error().message}});
    }
  if (!site.world.await_volume || site.world.keeps_volume)
    return remove_directories(site, {"ml", "etc", "image", "checkpoints", "entry", kFileSystems});
  if (auto removed = host::remove_volume(site.path(kDisk), site.path(kVolumeFile)); !removed) {
    log(Level::warning, "agent", "the volume cannot be removed", {{"error", removed.error().message}});
  }
  remove_directories(site,
                     {"ml", kDisk, "etc", "image", "checkpoints", "entry", kVolumesBeside, kFileSystems});
}

}  // namespace trainyard::agent
