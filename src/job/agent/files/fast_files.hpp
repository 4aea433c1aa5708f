// Shows channels in FastFile mode: objects as files of a read-only mount, whose bytes are fetched
// as the job reads them (mount/read_only_mount.hpp).
//
// Threads: confined to one; the mounts have threads of their own. Errors of mount(): as of
// channels.hpp; unavailable: FUSE cannot be used, or the store.
// Lifetime: the dependencies outlive it, and it outlives the job's processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/files/channels.hpp"
#include "mount/block_source.hpp"
#include "mount/read_only_mount.hpp"

namespace trainyard::agent {

// Lists a channel's share with what a mount has to know: sizes and versions. A manifest has
// neither, so each of its objects is looked up.
struct ListedChannel {
  std::vector<mount::MountedObject> objects;
  std::vector<std::string> keys;  // in the channel's order, relative to prefix_uri
  std::string prefix_uri;
};
Result<ListedChannel> list_share(objects::Objects& objects, const domain::Channel& channel,
                                 const Slot& slot, const Interruption& interruption);

// True if this process may use FUSE.
bool can_mount();

class FastFiles {
 public:
  // `cache`: nullptr: none. `endpoint` is a part of its blocks' identities. `holder` names the job
  // in lists of the cache's pins.
  FastFiles(objects::Objects& objects, cache::BlockCache* cache, Clock& clock,
            const std::string& endpoint, std::string holder, mount::BlockSource::Say say)
      : cache_(cache),
        endpoint_(endpoint),
        holder_(std::move(holder)),
        say_(say),
        source_(objects, cache, clock, {endpoint}, std::move(say)) {}

  // Mounts the objects at `directory`; `channel` names them in the log. The cache does not remove
  // their blocks until this object ends, as far as it has capacity for them.
  Result<void> mount(const std::string& directory, const std::string& channel,
                     std::vector<mount::MountedObject> objects);

 private:
  void hold_blocks(const std::string& channel, const std::vector<mount::MountedObject>& objects);

  cache::BlockCache* const cache_;
  const std::string endpoint_, holder_;
  const mount::BlockSource::Say say_;
  std::vector<std::unique_ptr<cache::HeldPin>> pins_;
  mount::BlockSource source_;
  std::vector<std::unique_ptr<mount::ReadOnlyMount>> mounts_;
};

}  // namespace trainyard::agent
