#include "agent/files/fast_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "agent/files/key_paths.hpp"
#include "base/thread_safety.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

// Requests the size and version of each object that has none, many at once.
Result<void> complete(objects::Objects& objects, std::vector<Download>& downloads,
                      const Interruption& interruption) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  Mutex mutex;
  Result<void> first;  // written with the mutex held
  const auto work = [&] {
    for (size_t i; !failed && (i = next++) < downloads.size();) {
      auto& each = downloads[i];
      if (!each.etag.empty()) continue;
      auto checked = interruption.check();
      auto info = checked ? objects.head(each.bucket, each.key)
                          : Result<objects::ObjectInfo>(std::move(checked).error());
      if (info) {
        each.bytes = info->bytes, each.etag = info->etag, each.modified = info->modified;
        continue;
      }
      const MutexLock lock(mutex);
      if (!failed) first = std::move(info).error().in("key " + in_quotes(each.key));
      failed = true;
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(kFetchesMax, downloads.size()); ++i) helpers.emplace_back(work);
  work();
  for (auto& helper : helpers) helper.join();
  return first;
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
  auto tree = TRY(mount::NameTree::make(std::move(objects)));
  mounts_.push_back(
      TRY(mount::ReadOnlyMount::make(directory, channel, std::move(tree), source_, say_)));
  return {};
}

}  // namespace trainyard::agent
