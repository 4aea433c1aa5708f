// Mounts channels so that their bytes are fetched as the job reads them
// (mount/read_only_mount.hpp): read-only in FastFile mode, and with a writable layer in File mode
// (docs/decisions/39).
//
// Threads: confined to one, but a SetOwner is callable from any; the mounts have threads of their
// own. Errors of mount(): those of channels.hpp; unavailable: the store, or FUSE cannot be used.
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

// Requests the size and version of each object that lacks them: objects that a manifest lists.
Result<void> complete(objects::Objects& objects, std::vector<Download>& downloads,
                      const Interruption& interruption);

// Converts a share. Requires: sizes and versions are known.
std::vector<mount::MountedObject> mounted_objects(std::vector<Download> share);

// Returns the reason why this process cannot use FUSE; "" if it can.
std::string why_no_fuse();

struct ChannelMountPlaces {
  std::string objects;  // the read-only mounts of channels in File mode
  std::string layers;   // the files that the job writes; on its volume
  std::string blocks;   // the blocks that the machine's cache cannot keep; on the job's volume
  // True if this process is root in a user namespace only.
  bool in_user_namespace = false;
};

class ChannelMounts {
 public:
  // Sets the owner of a channel's files before a container uses them. The ids are the machine's.
  using SetOwner = std::function<Result<void>(const containers::PosixIdentity& owner)>;

  // `cache` may be nullptr: none. `endpoint` is a part of the identities of blocks. `holder` names
  // the job in lists of the cache's pins.
  ChannelMounts(objects::Objects& objects, cache::BlockCache* cache, Clock& clock,
                const std::string& endpoint, std::string holder, ChannelMountPlaces places,
                mount::BlockSource::Say say);
  ~ChannelMounts();

  // Mounts the objects read-only at `directory`; `channel` names them in the log. As far as the
  // cache has capacity, it keeps their blocks for the lifetime of this object.
  Result<void> mount(const std::string& directory, const std::string& channel,
                     std::vector<mount::MountedObject> objects);
  // Mounts the objects with a writable layer, and begins to fetch all of them. `volume_free`: the
  // bytes that the job may still write. Errors also: unavailable if overlays cannot be used, or if
  // no cache can keep all blocks.
  Result<SetOwner> mount_writable(const std::string& directory, const std::string& channel,
                                  std::vector<mount::MountedObject> objects, uint64_t volume_free);
  // Returns the bytes that reads and warming fetched from the store, and those that reads took from
  // a cache.
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
  // A cache on the job's volume, and its source.
  std::unique_ptr<cache::BlockCache> volume_cache_;
  std::unique_ptr<mount::BlockSource> volume_source_;
  std::optional<uint64_t> volume_free_;  // less the bytes that channels have reserved
  std::vector<std::unique_ptr<mount::ReadOnlyMount>> mounts_;
  std::vector<std::string> overlays_;
  std::vector<std::unique_ptr<mount::CacheWarmer>> warmers_;
};

}  // namespace trainyard::agent
