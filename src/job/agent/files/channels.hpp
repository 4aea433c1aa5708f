// Lists a channel's objects, selects a host's share of them, assigns their file names, and
// downloads them.
//
// Threads: share_of_channel() and slot_of() are pure; download_share() starts threads and joins
// them.
// Errors: the user's (no such bucket, an empty prefix, an invalid manifest, keys without a file
//         name): invalid, denied or not_found, with a text for FailureReason; exhausted: the disk
//         is full; cancelled: interrupted; others: the object store's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/files/fetch.hpp"
#include "agent/files/listing.hpp"
#include "agent/interruption.hpp"
#include "base/result.hpp"
#include "data/contents.hpp"
#include "domain/job.hpp"
#include "objects/objects.hpp"

namespace trainyard::agent {

// The position of a host among the hosts that get a channel.
struct Slot {
  uint32_t host = 0, hosts = 1;
};
// Returns nullopt if the host's group does not get the channel.
std::optional<Slot> slot_of(const domain::Channel& channel,
                            const std::vector<domain::InstanceGroup>& groups,
                            domain::HostIndex host);

// All objects of a channel, in its order.
struct ChannelObjects {
  std::vector<Download> all;
  std::string prefix_uri;  // the common prefix of all keys, as a URI: "s3://data/in/"
};

// Converts a listing of the channel's prefix. A key's path is the part behind the prefix, or, when
// the prefix ends within a name, behind its last slash. Keys that end in a slash are directory
// markers of consoles and are left out.
Result<ChannelObjects> objects_of_listing(const domain::Channel& channel,
                                          const objects::Location& prefix,
                                          const std::vector<objects::ObjectInfo>& listed);

// Lists the channel's prefix, or reads its manifest. `marks`: the marks of earlier listings;
// nullptr: none. Errors also: invalid, for a channel of another kind.
Result<ChannelObjects> list_channel(objects::Objects& objects, const domain::Channel& channel,
                                    const ListingMarks* marks, const Interruption& interruption);

// Returns this host's share, in the order of the first epoch: ShardedByS3Key distributes objects
// round robin, after a shuffle if there is a seed. Errors: invalid: two objects would be the same
// file.
Result<std::vector<Download>> share_of_channel(const domain::Channel& channel,
                                               std::vector<Download> all, const Slot& slot);

// A host's share of a channel.
struct ListedShare {
  std::vector<Download> downloads;
  std::vector<std::string> keys;  // in the channel's order, relative to prefix_uri
  std::string prefix_uri;
};
Result<ListedShare> list_share(objects::Objects& objects, const domain::Channel& channel,
                               const Slot& slot, const ListingMarks* marks,
                               const Interruption& interruption);
// Returns the sum of the sizes, as far as they are known.
uint64_t bytes_of(const std::vector<Download>& downloads);

// Fetches a share into `directory`. Errors also: exhausted: the share does not fit on the disk.
Result<void> download_share(objects::Objects& objects, const std::vector<Download>& downloads,
                            const Tree& directory, const Interruption& interruption);

// Returns the contents that a channel in Pipe mode streams.
Result<data::Contents> stream_channel(objects::Objects& objects, const domain::Channel& channel,
                                      const ListingMarks* marks, const Interruption& interruption);

}  // namespace trainyard::agent
