#include "agent/channels.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "host/files.hpp"

namespace trainyard::agent {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
// What file systems allow in one name and in one path.
constexpr size_t kNameBytesMax = 255;
constexpr size_t kPathBytesMax = 3000;

std::string in_quotes(std::string_view key) { return "'" + shorten(to_utf8(key), 200) + "'"; }

// The path of a key's remainder, without empty parts. Errors: invalid, when it cannot be a file below a
// directory.
Result<std::string> safe_path(const std::string& key, std::string_view rest) {
  std::string path;
  for (const auto part : split(rest, '/')) {
    if (part.empty()) continue;
    if (part == ".." || part == ".")
      return invalid("the key " + in_quotes(key) + " holds '" + std::string(part) +
                     "', which would lead out of its place");
    if (part.size() > kNameBytesMax)
      return invalid("the key " + in_quotes(key) +
                     " has a part of more than 255 bytes, too long for a file's name");
    if (part.find('\0') != std::string_view::npos)
      return invalid("the key " + in_quotes(key) + " holds a NUL byte");
    if (!path.empty()) path += '/';
    path += part;
  }
  if (path.empty()) return invalid("the key " + in_quotes(key) + " leaves no name for a file");
  if (path.size() > kPathBytesMax) return invalid("the key " + in_quotes(key) + " is too long for a path");
  return path;
}

std::string_view below_prefix(const std::string& key, const std::string& prefix) {
  const std::string_view text = key;
  if (prefix.empty() || prefix.ends_with('/')) return text.substr(prefix.size());
  if (text.size() > prefix.size() && text[prefix.size()] == '/') return text.substr(prefix.size() + 1);
  const size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? text : text.substr(slash + 1);
}

// Each path is one file, and no file is another's directory.
Result<void> check_paths(const std::vector<Download>& downloads) {
  std::map<std::string_view, const Download*> files;
  for (const auto& download : downloads) {
    const auto [other, added] = files.emplace(download.path, &download);
    if (!added) {
      return invalid("the keys " + in_quotes(other->second->key) + " and " + in_quotes(download.key) +
                     " would be the same file");
    }
  }
  for (const auto& download : downloads) {
    for (size_t slash = download.path.find('/'); slash != std::string::npos;
         slash = download.path.find('/', slash + 1)) {
      const auto other = files.find(std::string_view(download.path).substr(0, slash));
      if (other != files.end()) {
        return invalid("the key " + in_quotes(other->second->key) + " would be a file where " +
                       in_quotes(download.key) + " needs a directory");
      }
    }
  }
  return {};
}

Result<std::vector<objects::ObjectInfo>> list_all(objects::Objects& objects,
                                                  const objects::Location& location,
                                                  const Interruption& interruption) {
  std::vector<objects::ObjectInfo> found;
  objects::ListQuery query;
  query.prefix = location.key;
  do {
    TRY(interruption.check());
    auto page = TRY(objects.list(location.bucket, query));
    found.insert(found.end(), std::make_move_iterator(page.objects.begin()),
                 std::make_move_iterator(page.objects.end()));
    query.start_after = page.next;
    if (found.size() > kChannelObjectsMax) {
      return exhausted("there are more than " + std::to_string(kChannelObjectsMax) +
                       " objects; that is all one channel may have");
    }
  } while (!query.start_after.empty());
  return found;
}

Result<void> fetch(objects::Objects& objects, const std::string& bucket, const Download& download,
                   const std::string& directory, const Interruption& interruption) {
  const std::string path = directory + "/" + download.path;
  const auto reader = TRY(objects.get(bucket, download.key));
  const host::File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) return from_errno("writing " + download.path);
  std::vector<char> buffer(kBufferBytes);
  for (;;) {
    TRY(interruption.check());
    const size_t got = TRY(reader->read(buffer));
    if (got == 0) return {};
    for (size_t written = 0; written < got;) {
      const ssize_t now = ::write(file.descriptor(), buffer.data() + written, got - written);
      if (now < 0 && errno == EINTR) continue;
      if (now < 0) return from_errno("writing " + download.path);
      written += static_cast<size_t>(now);
    }
  }
}

Result<void> fetch_all(objects::Objects& objects, const std::string& bucket,
                       const std::vector<Download>& downloads, const std::string& directory,
                       const Interruption& interruption) {
  std::set<std::string> parents;
  for (const auto& download : downloads) {
    const size_t slash = download.path.rfind('/');
    if (slash != std::string::npos && parents.insert(download.path.substr(0, slash)).second) {
      TRY(host::make_directories(directory + "/" + download.path.substr(0, slash)));
    }
  }
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  Result<void> first;  // guarded by mutex
  const auto work = [&] {
    for (size_t i; !failed && (i = next++) < downloads.size();) {
      auto fetched = fetch(objects, bucket, downloads[i], directory, interruption);
      if (fetched) continue;
      const std::lock_guard lock(mutex);
      if (!failed) first = std::move(fetched).error().in("key " + in_quotes(downloads[i].key));
      failed = true;
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min(kDownloadsMax, downloads.size()); ++i) helpers.emplace_back(work);
  work();
  for (auto& helper : helpers) helper.join();
  return first;
}

}  // namespace

Result<std::vector<Download>> plan_channel(const domain::Channel& channel, const std::string& prefix,
                                           const std::vector<objects::ObjectInfo>& listed,
                                           domain::HostIndex host, uint32_t hosts) {
  std::vector<Download> all;
  for (const auto& object : listed) {
    if (object.key.ends_with('/')) continue;
    // On a line of its own: clang 14 does not destroy what stands before a TRY in the same braces.
    auto path = TRY(safe_path(object.key, below_prefix(object.key, prefix)));
    all.push_back({object.key, std::move(path), object.bytes});
  }
  if (all.empty()) return not_found("no objects under " + channel.s3_uri);
  TRY(check_paths(all));
  if (channel.distribution == domain::Distribution::fully_replicated) return all;
  std::vector<Download> share;
  for (size_t i = host; i < all.size(); i += hosts) share.push_back(std::move(all[i]));
  return share;
}

Result<Downloaded> download_channel(objects::Objects& objects, const domain::Channel& channel,
                                    domain::HostIndex host, uint32_t hosts, const std::string& directory,
                                    const Interruption& interruption) {
  const auto location = TRY(objects::parse_s3_uri(channel.s3_uri));
  auto listed = list_all(objects, location, interruption);
  if (!listed && listed.error().kind == Kind::not_found)
    return not_found("there is no bucket " + location.bucket + " (" + channel.s3_uri + ")");
  if (!listed) return std::move(listed).error().in("listing " + channel.s3_uri);
  const auto downloads = TRY(plan_channel(channel, location.key, *listed, host, hosts));

  Downloaded done;
  const size_t slash = location.key.ends_with('/') ? location.key.size() - 1 : location.key.rfind('/');
  done.prefix_uri =
      "s3://" + location.bucket + "/" + (slash == std::string::npos ? "" : location.key.substr(0, slash + 1));
  for (const auto& download : downloads) {
    done.paths.push_back(download.path);
    done.bytes += download.bytes;
  }
  done.files = downloads.size();
  TRY(host::make_directories(directory));
  struct statvfs volume {};
  if (::statvfs(directory.c_str(), &volume) == 0) {
    const uint64_t free_bytes = static_cast<uint64_t>(volume.f_bavail) * volume.f_frsize;
    if (done.bytes > free_bytes) {
      return exhausted("there is no room on the disk: the channel has " + human_bytes(done.bytes) + ", and " +
                       human_bytes(free_bytes) + " are free");
    }
  }
  auto fetched = fetch_all(objects, location.bucket, downloads, directory, interruption);
  if (!fetched) return std::move(fetched).error();
  return done;
}

}  // namespace trainyard::agent
