#include "agent/files/fast_files.hpp"

#include <fcntl.h>

#include "agent/files/key_paths.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/parallel.hpp"

namespace trainyard::agent {
namespace {

// Requests the size and version of each object that has none, many at once.
Result<void> complete(objects::Objects& objects, std::vector<Download>& downloads,
                      const Interruption& interruption) {
  return os::for_each_in_parallel(downloads.size(), kFetchesMax, [&](size_t i) -> Result<void> {
    auto& each = downloads[i];
    if (!each.etag.empty()) return {};
    TRY(interruption.check());
    auto info = TRY(objects.head(each.bucket, each.key).in("key " + in_quotes(each.key)));
    each.bytes = info.bytes, each.etag = std::move(info.etag), each.modified = info.modified;
    return {};
  });
}

}  // namespace

Result<ListedChannel> list_share(objects::Objects& objects, const domain::Channel& channel,
                                 const Slot& slot, const Interruption& interruption) {
  auto found = TRY(list_channel(objects, channel, interruption));
  auto share = TRY(share_of_channel(channel, std::move(found.all), slot));
  TRY(complete(objects, share, interruption));
  ListedChannel listed;
  listed.prefix_uri = std::move(found.prefix_uri);
  const size_t common = TRY(objects::parse_s3_uri(listed.prefix_uri)).key.size();
  for (auto& each : share) {
    listed.keys.push_back(each.key.substr(common));
    listed.objects.push_back({std::move(each.bucket), std::move(each.key), std::move(each.path),
                              each.bytes, std::move(each.etag),
                              to_milliseconds(each.modified) / 1000});
  }
  return listed;
}

bool can_mount() { return static_cast<bool>(os::File(::open("/dev/fuse", O_RDWR | O_CLOEXEC))); }

Result<void> FastFiles::mount(const std::string& directory, const std::string& channel,
                              std::vector<mount::MountedObject> objects) {
  hold_blocks(channel, objects);
  auto tree = TRY(mount::NameTree::make(std::move(objects)));
  mounts_.push_back(
      TRY(mount::ReadOnlyMount::make(directory, channel, std::move(tree), source_, say_)));
  return {};
}

// Without the pin the job runs as well, and may fetch blocks again.
void FastFiles::hold_blocks(const std::string& channel,
                            const std::vector<mount::MountedObject>& objects) {
  if (cache_ == nullptr) return;
  auto held = cache_->hold(holder_ + ", channel " + channel, mount::blocks_of(endpoint_, objects));
  if (!held) {
    say_("channel " + channel +
         ": blocks in the machine's cache may be removed while this job runs: " +
         held.error().message);
    return;
  }
  const auto& pin = **held;
  if (pin.bytes_pinned < pin.bytes_wanted)
    say_("channel " + channel + ": the machine's cache keeps " + human_bytes(pin.bytes_pinned) +
         " of " + human_bytes(pin.bytes_wanted) +
         " while this job runs, the rest may be fetched again: it guarantees at most " +
         human_bytes(pin.bytes_max) + ", of which others have " + human_bytes(pin.bytes_of_others));
  pins_.push_back(*std::move(held));
}

}  // namespace trainyard::agent
