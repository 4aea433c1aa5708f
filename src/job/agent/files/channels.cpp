#include "agent/files/channels.hpp"

#include <algorithm>

#include "agent/files/key_paths.hpp"
#include "base/arithmetic.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "contract/failure_text.hpp"
#include "data/manifest.hpp"
#include "data/permutation.hpp"

namespace trainyard::agent {
namespace {

// Items of a channel are counted in 32 bits.
static_assert(kListedObjectsMax <= UINT32_MAX && data::kManifestBytesMax <= UINT32_MAX &&
              data::kAugmentedBytesMax <= UINT32_MAX);

// Converts an error of the store about the channel's location, with a text for the user.
Error explained(Error error, const objects::Location& location, const std::string& uri) {
  if (error.is(objects::Fault::key_missing)) return not_found("object " + uri + " not found");
  if (error.kind == Kind::not_found)
    return not_found("bucket " + location.bucket + " not found (" + uri + ")");
  return std::move(error).in("reading " + uri);
}

// Returns the common beginning of all keys of a prefix, up to a slash.
size_t common_bytes(const std::string& prefix, const std::vector<Download>& all) {
  if (prefix.empty() || prefix.ends_with('/')) return prefix.size();
  if (std::all_of(all.begin(), all.end(),
                  [&](const Download& each) { return each.key.starts_with(prefix + "/"); }))
    return prefix.size() + 1;
  const size_t slash = prefix.rfind('/');
  return slash == std::string::npos ? 0 : slash + 1;
}

Result<std::string> read_document(objects::Objects& objects, const domain::Channel& channel,
                                  size_t bytes_max) {
  const auto location = TRY(objects::parse_s3_uri(channel.s3_uri));
  auto text = objects::read_all(objects, location.bucket, location.key, bytes_max);
  if (!text) return explained(std::move(text).error(), location, channel.s3_uri);
  return text;
}

Result<ChannelObjects> objects_of_manifest(objects::Objects& objects,
                                           const domain::Channel& channel) {
  const auto text = TRY(read_document(objects, channel, data::kManifestBytesMax));
  auto manifest = TRY(data::read_manifest(text).in(channel.s3_uri));
  ChannelObjects found;
  found.prefix_uri = manifest.prefix_uri;
  for (auto& entry : manifest.entries) {
    auto path = TRY(path_of_key(entry.from.key, entry.rest));
    found.all.push_back({entry.from.bucket, std::move(entry.from.key), std::move(path), 0, ""});
  }
  return found;
}

}  // namespace

std::optional<Slot> slot_of(const domain::Channel& channel,
                            const std::vector<domain::InstanceGroup>& groups,
                            domain::HostIndex host) {
  Slot slot{0, 0};
  bool among_them = false;
  domain::HostIndex first = 0;
  for (const auto& group : groups) {
    if (channel.is_of(group.name)) {
      if (host >= first && host < first + group.count) {
        slot.host = slot.hosts + (host - first);
        among_them = true;
      }
      slot.hosts += group.count;
    }
    first += group.count;
  }
  if (!among_them) return {};
  return slot;
}

Result<ChannelObjects> objects_of_listing(const domain::Channel& channel,
                                          const objects::Location& prefix,
                                          const std::vector<objects::ObjectInfo>& listed) {
  ChannelObjects found;
  for (const auto& object : listed) {
    if (object.key.ends_with('/')) continue;
    // On a line of its own: clang 14 does not destroy objects before a TRY in the same braces.
    auto path = TRY(path_of_key(object.key, below_prefix(object.key, prefix.key)));
    found.all.push_back(
        {prefix.bucket, object.key, std::move(path), object.bytes, object.etag, object.modified});
  }
  if (found.all.empty()) return not_found(contract::no_objects_text(channel.s3_uri));
  found.prefix_uri = "s3://" + prefix.bucket + "/" +
                     found.all.front().key.substr(0, common_bytes(prefix.key, found.all));
  return found;
}

Result<ChannelObjects> list_channel(objects::Objects& objects, const domain::Channel& channel,
                                    const ListingMarks* marks, const Interruption& interruption) {
  if (channel.s3_data_type == "ManifestFile") return objects_of_manifest(objects, channel);
  if (channel.s3_data_type != "S3Prefix" && !channel.s3_data_type.empty())
    return invalid("S3DataType " + channel.s3_data_type +
                   " is not supported in this input mode: use S3Prefix or ManifestFile");
  const auto prefix = TRY(objects::parse_s3_uri(channel.s3_uri));
  const auto known = marks == nullptr ? std::vector<std::string>() : marks->read(prefix);
  auto listed = list_all(objects, prefix, interruption, known);
  if (!listed) return explained(std::move(listed).error(), prefix, channel.s3_uri);
  if (marks != nullptr)
    if (const auto kept = marks->write(prefix, *listed); !kept)
      log(Level::warning, "agent", "cannot store the marks of a listing",
          {{"why", kept.error().message}});
  return objects_of_listing(channel, prefix, *listed);
}

Result<std::vector<Download>> share_of_channel(const domain::Channel& channel,
                                               std::vector<Download> all, const Slot& slot) {
  TRY(check_paths(all));
  auto order = data::permutation_of(static_cast<uint32_t>(all.size()), channel.shuffle_seed, 0);
  if (channel.distribution == domain::Distribution::sharded_by_s3_key)
    order = data::share_of(order, slot.host, slot.hosts);
  std::vector<Download> share;
  share.reserve(order.size());
  for (const uint32_t number : order) share.push_back(std::move(all[number]));
  return share;
}

Result<ListedShare> list_share(objects::Objects& objects, const domain::Channel& channel,
                               const Slot& slot, const ListingMarks* marks,
                               const Interruption& interruption) {
  auto found = TRY(list_channel(objects, channel, marks, interruption));
  ListedShare share;
  share.downloads = TRY(share_of_channel(channel, std::move(found.all), slot));
  share.prefix_uri = std::move(found.prefix_uri);
  const size_t common = TRY(objects::parse_s3_uri(share.prefix_uri)).key.size();
  for (const auto& download : share.downloads) share.keys.push_back(download.key.substr(common));
  return share;
}

uint64_t bytes_of(const std::vector<Download>& downloads) {
  uint64_t bytes = 0;
  for (const auto& download : downloads) bytes = saturating_add(bytes, download.bytes);
  return bytes;
}

Result<void> download_share(objects::Objects& objects, const std::vector<Download>& downloads,
                            const Tree& directory, const Interruption& interruption) {
  if (const auto free_bytes = directory.free_bytes())
    TRY(check_disk_space(downloads, *free_bytes, "the channel"));
  return fetch_all(objects, downloads, directory, interruption);
}

Result<data::Contents> stream_channel(objects::Objects& objects, const domain::Channel& channel,
                                      const ListingMarks* marks, const Interruption& interruption) {
  if (channel.s3_data_type == "AugmentedManifestFile") {
    auto text = TRY(read_document(objects, channel, data::kAugmentedBytesMax));
    return data::Contents::of_lines(std::move(text), channel.attribute_names).in(channel.s3_uri);
  }
  auto found = TRY(list_channel(objects, channel, marks, interruption));
  std::vector<objects::Location> all;
  all.reserve(found.all.size());
  for (auto& each : found.all) all.push_back({std::move(each.bucket), std::move(each.key)});
  return data::Contents(std::move(all));
}

}  // namespace trainyard::agent
