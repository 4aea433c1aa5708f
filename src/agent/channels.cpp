#include "agent/channels.hpp"

#include <sys/statvfs.h>

#include "agent/key_paths.hpp"
#include "base/text.hpp"
#include "host/files.hpp"

namespace trainyard::agent {

Result<std::vector<Download>> plan_channel(const domain::Channel& channel, const objects::Location& from,
                                           const std::vector<objects::ObjectInfo>& listed,
                                           domain::HostIndex host, uint32_t hosts) {
  std::vector<Download> all;
  for (const auto& object : listed) {
    if (object.key.ends_with('/')) continue;
    // On a line of its own: clang 14 does not destroy what stands before a TRY in the same braces.
    auto path = TRY(path_of_key(object.key, below_prefix(object.key, from.key)));
    all.push_back({from.bucket, object.key, std::move(path), object.bytes, object.etag});
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
  const auto downloads = TRY(plan_channel(channel, location, *listed, host, hosts));

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
  auto fetched = fetch_all(objects, downloads, directory, interruption);
  if (!fetched) return std::move(fetched).error();
  return done;
}

}  // namespace trainyard::agent
