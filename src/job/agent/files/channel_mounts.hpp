// Shows channels as mounts whose bytes are fetched as the job reads them
// (mount/read_only_mount.hpp): read-only ones in FastFile mode, and in File mode with a writable
// layer over them (docs/decisions/39).
//
// Threads: confined to one, but a SetOwner is callable from any; the mounts have threads of their
// own. Errors of mount(): as of channels.hpp; unavailable: FUSE cannot be used, or the store.
// Lifetime: the dependencies outlive it, and it outlives the job's processes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/files/channels.hpp"
#include "containers/container.hpp"
#include "mount/block_source.hpp"
#include "mount/cache_warmer.hpp"
#include "mount/read_only_mount.hpp"

namespace trainyard::agent {

// Requests the size and version of each object that has none: those of a manifest.
Result<void> complete(objects::Objects& objects, std::vector<Download>& downloads,
                      const Interruption& interruption);

// Converts a share whose sizes and versions are known.
std::vector<mount::MountedObject> mounted_objects(std::vector<Download> share);

// Returns why this process cannot use FUSE; "" if it may.
std::string why_no_fuse();

struct ChannelMountPlaces {
  std::string objects;  // where the objects of channels in File mode are shown, read-only
  std::string layers;   // of files that the job writes; on its volume
  std::string blocks;   // those that the machine's cache cannot keep; on the job's volume
  // this process is root of a user namespace only
  bool in_user_namespace = false;
};

class ChannelMounts {
 public:
  // Sets the owner of a channel's files, by the machine's ids, before a container uses them.
  using SetOwner = std::function<Result<void>(const containers::PosixIdentity& owner)>;

  // `cache`: nullptr: none. `endpoint` is a part of its blocks' identities. `holder` names the job
  // in lists of the cache's pins.
  ChannelMounts(objects::Objects& objects, cache::BlockCache* cache, Clock& clock,
                const std::string& endpoint, std::string holder, ChannelMountPlaces places,
                mount::BlockSource::Say say);
  ~ChannelMounts();

  // Mounts the objects read-only at `directory`; `channel` names them in the log. The cache does
  // not remove their blocks until this object ends, as far as it has capacity for them.
  Result<void> mount(const std::string& directory, const std::string& channel,
                     std::vector<mount::MountedObject> objects);
  // Mounts the objects with a writable layer, and begins to fetch all of them. `volume_free`: bytes
  // that the job may still write. Errors also: unavailable, also if overlays cannot be used, or if
  // no cache keeps all blocks.
  Result<SetOwner> mount_writable(const std::string& directory, const std::string& channel,
                                  std::vector<mount::MountedObject> objects, uint64_t volume_free);
  // Bytes that reads and warming took from the store, and reads from a cache.
  mount::SourceCounts counts() const;

 private:
  Result<std::unique_ptr<cache::HeldPin>> hold(const std::string& channel,
                                               const std::vector<mount::MountedObject>& objects);
  void hold_or_report(const std::string& channel, const std::vector<mount::MountedObject>& objects);
  Result<mount::BlockSource*> lasting_source(const std::string& channel,
                                             const std::vector<mount::MountedObject>& objects,
                                             uint64_t volume_free);
  Result<void> open_volume_source();

  objects::Objects& objects_;
  cache::BlockCache* const cache_;
  Clock& clock_;
  const std::string endpoint_, holder_;
  const ChannelMountPlaces places_;
  const mount::BlockSource::Say say_;
  std::vector<std::unique_ptr<cache::HeldPin>> pins_;
  mount::BlockSource source_;
  // With a cache on the job's volume.
  std::unique_ptr<cache::BlockCache> volume_cache_;
  std::unique_ptr<mount::BlockSource> volume_source_;
  std::optional<uint64_t> volume_free_;  // less what channels reserved
  std::vector<std::unique_ptr<mount::ReadOnlyMount>> mounts_;
  std::vector<std::string> overlays_;
  std::vector<std::unique_ptr<mount::CacheWarmer>> warmers_;
};

}  // namespace trainyard::agent
