// Provides the directories that a Batch job requests: shared ones from the config, and empty ones
// of this host.
#include <sys/stat.h>

#include "agent/steps.hpp"
#include "os/files.hpp"
#include "os/mounts.hpp"

namespace trainyard::agent {
namespace {

// Mounts a shared directory on a path that no job can change, and adds its mount in the container.
Result<std::string> mount_shared(StepContext& context, const domain::Volume& volume,
                                 const std::string& place) {
  const auto root = context.order.file_systems.find(volume.name);
  if (root == context.order.file_systems.end())
    return not_found("volume " + volume.name + " not found in the order");
  const std::string target = context.path(kFileSystems + ("/" + place));
  TRY(os::bind_beneath(root->second, volume.path, target).in(volume.name));
  return target;
}

// Makes an empty directory, writable for any user of the container.
Result<std::string> make_own(StepContext& context, const std::string& place) {
  const std::string path = context.path(
      std::string(context.volume_limited ? kVolumes : kUnlimitedVolumes) + "/" + place);
  TRY(os::make_directories(path));
  if (::chmod(path.c_str(), 01777) != 0) return from_errno("opening " + path + " to the job");
  return path;
}

}  // namespace

std::optional<Failure> bring_volumes(StepContext& context) {
  const auto& volumes = context.container_options().volumes;
  for (size_t i = 0; i < volumes.size(); ++i) {
    const domain::Volume& volume = volumes[i];
    containers::Mount mount;
    mount.destination = volume.destination;
    mount.read_only = volume.read_only;
    if (volume.kind == domain::VolumeKind::memory) {
      mount.tmpfs_bytes = uint64_t(volume.bytes);
      context.mounts.push_back(std::move(mount));
      continue;
    }
    // A directory that is mounted twice is made once.
    size_t first = 0;
    while (volumes[first].kind != volume.kind || volumes[first].name != volume.name) ++first;
    auto source = volume.kind == domain::VolumeKind::own
                      ? make_own(context, std::to_string(first))
                      : mount_shared(context, volume, "volume-" + std::to_string(i));
    if (!source)
      return failure_of(source.error(), "The volume for " + volume.destination + " cannot be used");
    mount.source = *std::move(source);
    if (volume.kind == domain::VolumeKind::shared) mount.identity = shared_identity(context);
    context.mounts.push_back(std::move(mount));
  }
  return {};
}

}  // namespace trainyard::agent
