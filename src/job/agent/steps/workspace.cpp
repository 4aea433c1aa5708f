// Makes the host's directories. Files of an earlier attempt are removed first.
#include "agent/steps.hpp"
#include "base/log.hpp"
#include "os/files.hpp"
#include "os/mounts.hpp"
#include "os/volume.hpp"

namespace trainyard::agent {
namespace {

void remove_each(StepContext& context, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto removed = os::remove_all(context.path(name)); !removed) {
      log(Level::warning, "agent", "cannot remove a directory",
          {{"error", removed.error().message}});
    }
  }
}

void remove_directories(StepContext& context, std::initializer_list<const char*> names) {
  if (auto removed = context.world.remove_container(context.container_id(), context.path("bundle"));
      !removed) {
    log(Level::warning, "agent", "cannot remove the rest of the container",
        {{"error", removed.error().message}});
  }
  remove_each(context, names);
  // Keeps the directories that a reused container has mounted.
  if (context.order.reuse_host) return;
  if (context.writes_to_memory_only())
    if (auto unmounted = os::unmount(context.path(kActivity)); !unmounted) {
      log(Level::warning, "agent", "cannot unmount the activity table",
          {{"error", unmounted.error().message}});
    }
  remove_each(context, {kActivity, kPrograms});
}

}  // namespace

std::optional<Failure> make_workspace(StepContext& context) {
  // "ml" is left out if volumes have a size: the volume is being mounted on it.
  if (context.died_before || os::exists(context.path("etc")))
    remove_directories(context,
                       {"etc", "image", "checkpoints", "tensorboard", "entry", kUnlimitedVolumes,
                        kUnlimitedChannelLayers, kUnlimitedChannelBlocks, kMountedObjects,
                        context.world.await_volume ? "etc" : "ml"});
  if (context.died_before) {
    return Failure{domain::Fault::lost, "the agent of this host died while it ran the job"};
  }
  for (const char* name : {"ml", "etc"}) {
    if (auto made = os::make_directories(context.path(name)); !made)
      return failure_of(made.error(), "making the host's directories");
  }
  return {};
}

// Waits for the volume that enforces VolumeSizeInGB, or a Batch job's ephemeralStorage. If the
// machine cannot enforce it, the job's log says so. The mount at "ml" does not change from now on.
std::optional<Failure> await_volume(StepContext& context) {
  if (context.world.await_volume) {
    const auto made = context.world.await_volume();
    context.volume_limited = static_cast<bool>(made);
    if (!made)
      context.world.facts.say(std::string(size_member(context)) +
                              " is not enforced on this machine: " + made.error().message);
  }
  auto opened = Tree::open(context.ml());
  if (!opened) return failure_of(opened.error(), "opening the host's directories");
  context.ml_tree = *std::move(opened);
  return {};
}

void remove_workspace(StepContext& context) {
  context.ml_tree.reset();  // otherwise the volume stays busy
  if (context.world.await_volume) (void)context.world.await_volume();
  // Unmounts before anything is removed: the files of a mount must stay. A Batch job has only the
  // requested mounts, so its mounts need not be listed, which takes time.
  for (const char* mounts : {kFileSystems, kMountedObjects}) {
    if (!os::exists(context.path(mounts))) continue;
    if (auto unmounted = os::unmount_below(context.path(mounts)); !unmounted) {
      log(Level::warning, "agent", "cannot unmount a file system",
          {{"error", unmounted.error().message}});
    }
  }
  if (context.order.spec.contract == domain::Contract::training)
    if (auto unmounted = os::unmount_below(context.ml()); !unmounted) {
      log(Level::warning, "agent", "cannot unmount the volume",
          {{"error", unmounted.error().message}});
    }
  if (!context.world.await_volume || context.world.keeps_volume)
    return remove_directories(
        context, {"ml", "etc", "image", "checkpoints", "tensorboard", "entry", kFileSystems,
                  kMountedObjects, kUnlimitedChannelLayers, kUnlimitedChannelBlocks,
                  "disk/checkpoints", "disk/tensorboard", "disk/entry"});
  if (auto removed = os::remove_volume(context.path(kDisk), context.path(kVolumeFile)); !removed) {
    log(Level::warning, "agent", "cannot remove the volume", {{"error", removed.error().message}});
  }
  remove_directories(context, {"ml", kDisk, "etc", "image", "checkpoints", "tensorboard", "entry",
                               kUnlimitedVolumes, kFileSystems, kMountedObjects,
                               kUnlimitedChannelLayers, kUnlimitedChannelBlocks});
}

}  // namespace trainyard::agent
