#include "agent/files/channel_mounts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "agent/files/file_mode.hpp"
#include "agent/files/key_paths.hpp"
#include "base/arithmetic.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/mounts.hpp"
#include "os/parallel.hpp"

namespace trainyard::agent {
namespace {

// The percentage of the machine's pinnable bytes that one job may pin on this host: a job with a
// large data set leaves some for others.
constexpr uint64_t kJobPinsPercent = 75;
// The modes of a copied object and its directories.
constexpr mount::MountModes kWritableModes{0644, 0755};

// Returns the bytes on disk that all blocks of the objects need.
uint64_t block_bytes(const std::vector<cache::PinnedBlock>& blocks,
                     const std::vector<mount::MountedObject>& objects) {
  if (blocks.size() < cache::kPinBlocksMax) return cache::bytes_of(blocks);
  // A pin cannot list this many blocks, so sum the objects. The file of each block also contains
  // the block's identity.
  uint64_t bytes = 0;
  for (const auto& each : objects) {
    const uint64_t count = each.bytes / cache::kBlockBytes + 1;
    bytes = saturating_add(bytes, saturating_add(each.bytes, count * cache::kIdentityBytesMax));
  }
  return bytes;
}

}  // namespace

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

std::vector<mount::MountedObject> mounted_objects(std::vector<Download> share) {
  std::vector<mount::MountedObject> objects;
  objects.reserve(share.size());
  for (auto& each : share)
    objects.push_back({std::move(each.bucket), std::move(each.key), std::move(each.path),
                       each.bytes, std::move(each.etag), to_milliseconds(each.modified) / 1000});
  return objects;
}

std::string why_no_fuse() {
  return os::File(::open("/dev/fuse", O_RDWR | O_CLOEXEC))
             ? ""
             : "/dev/fuse cannot be opened on this machine";
}

ChannelMounts::ChannelMounts(objects::Objects& objects, cache::BlockCache* cache, Clock& clock,
                             const std::string& endpoint, std::string holder,
                             ChannelMountPlaces places, mount::BlockSource::Say say)
    : objects_(objects),
      cache_(cache),
      clock_(clock),
      endpoint_(endpoint),
      holder_(std::move(holder)),
      places_(std::move(places)),
      say_(say),
      source_(objects, cache, clock, {endpoint}, std::move(say)) {}

ChannelMounts::~ChannelMounts() {
  source_.stop();
  if (volume_source_) volume_source_->stop();
  warmers_.clear();
  for (const auto& each : overlays_)
    if (auto unmounted = os::unmount_below(each); !unmounted)
      log(Level::warning, "agent", "cannot unmount a channel",
          {{"error", unmounted.error().message}});
}

Result<void> ChannelMounts::mount(const std::string& directory, const std::string& channel,
                                  std::vector<mount::MountedObject> objects) {
  hold_or_report(channel, objects);
  auto tree = TRY(mount::NameTree::make(std::move(objects)));
  mounts_.push_back(
      TRY(mount::ReadOnlyMount::make(directory, channel, std::move(tree), source_, say_)));
  return {};
}

Result<std::unique_ptr<cache::HeldPin>> ChannelMounts::hold(
    const std::string& channel, const std::vector<mount::MountedObject>& objects) {
  uint64_t own = 0;
  for (const auto& each : pins_) own = saturating_add(own, each->bytes_pinned);
  const uint64_t bytes_max = cache_->pinned_bytes_max() / 100 * kJobPinsPercent;
  return cache_->hold(holder_ + ", channel " + channel, mount::blocks_of(endpoint_, objects),
                      bytes_max - std::min(bytes_max, own));
}

// Pins the channel's blocks. Without the pin the job runs too, but may fetch blocks again.
void ChannelMounts::hold_or_report(const std::string& channel,
                                   const std::vector<mount::MountedObject>& objects) {
  if (cache_ == nullptr) return;
  auto held = hold(channel, objects);
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
         " while this job runs, and the rest may be fetched again. It pins at most " +
         human_bytes(pin.bytes_max) + " for all jobs, and " + std::to_string(kJobPinsPercent) +
         "% of that for one job; other jobs have pinned " + human_bytes(pin.bytes_of_others));
  pins_.push_back(*std::move(held));
}

// Returns a source with a cache that keeps all blocks of the objects for the lifetime of this
// object.
Result<mount::BlockSource*> ChannelMounts::lasting_source(
    const std::string& channel, const std::vector<mount::MountedObject>& objects,
    uint64_t volume_free) {
  const uint64_t needed = block_bytes(mount::blocks_of(endpoint_, objects), objects);
  std::unique_ptr<cache::HeldPin> pin;
  // A disk that is nearly full keeps no blocks, pinned or not.
  if (cache_ != nullptr && cache_->keeps(cache::kBlockBytes))
    if (auto held = hold(channel, objects)) pin = *std::move(held);
  if (!volume_free_) volume_free_ = volume_free;
  switch (choose_cache(needed, pin ? pin->bytes_pinned : 0, *volume_free_)) {
    case BlocksKept::on_machine:
      if (pin) pins_.push_back(std::move(pin));
      return &source_;
    case BlocksKept::on_volume:
      TRY(open_volume_source());
      *volume_free_ -= needed;
      return volume_source_.get();
    case BlocksKept::nowhere:
      break;
  }
  return unavailable("neither the machine's cache nor the job's volume has space for its " +
                     human_bytes(needed));
}

Result<void> ChannelMounts::open_volume_source() {
  if (volume_source_) return {};
  // Only the size of the volume limits this cache.
  volume_cache_ = TRY(
      cache::BlockCache::open({places_.blocks, uint64_t(std::numeric_limits<int64_t>::max()), 0}));
  volume_source_ = std::make_unique<mount::BlockSource>(objects_, volume_cache_.get(), clock_,
                                                        mount::SourceSettings{endpoint_}, say_);
  return {};
}

// If the overlay fails, the read-only mount stays until the end: other channels may use its source.
Result<ChannelMounts::SetOwner> ChannelMounts::mount_writable(
    const std::string& directory, const std::string& channel,
    std::vector<mount::MountedObject> objects, uint64_t volume_free) {
  auto* const source = TRY(lasting_source(channel, objects, volume_free));
  auto tree = TRY(mount::NameTree::make(std::move(objects)));
  const std::string lower = places_.objects + "/" + channel;
  mounts_.push_back(TRY(
      mount::ReadOnlyMount::make(lower, channel, std::move(tree), *source, say_, kWritableModes)));
  auto& mounted = *mounts_.back();
  if (auto made = os::mount_overlay(lower, places_.layers + "/" + channel, directory,
                                    places_.in_user_namespace);
      !made) {
    if (source == &source_ && !pins_.empty()) pins_.pop_back();
    return unavailable("a writable layer over a FUSE file system cannot be mounted: " +
                       made.error().message);
  }
  overlays_.push_back(directory);
  warmers_.push_back(std::make_unique<mount::CacheWarmer>(*source, mounted.tree().objects()));
  return SetOwner([&mounted, directory](const containers::PosixIdentity& owner) -> Result<void> {
    mounted.set_owner(owner.user_id, owner.group_id);
    if (::chown(directory.c_str(), owner.user_id, owner.group_id) != 0)
      return from_errno("changing the owner of " + directory);
    return {};
  });
}

mount::SourceCounts ChannelMounts::counts() const {
  auto counts = source_.counts();
  if (volume_source_) {
    const auto more = volume_source_->counts();
    counts.fetched_bytes += more.fetched_bytes, counts.cached_bytes += more.cached_bytes;
  }
  return counts;
}

}  // namespace trainyard::agent
