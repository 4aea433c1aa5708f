// A channel's data: which objects it has, which of them a host gets, under which names, and bringing them
// there.
//
// Threads: share_of_channel() and seat_of() are pure; download_channel() starts threads and joins them.
// Errors: of the user's making (no such bucket, an empty prefix, a manifest that is none, keys that cannot be
//         files): invalid, denied or not_found, in words for FailureReason; exhausted: the disk is full;
//         cancelled: interrupted; others: the object store's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/fetch.hpp"
#include "agent/interruption.hpp"
#include "base/result.hpp"
#include "data/contents.hpp"
#include "domain/job.hpp"
#include "objects/objects.hpp"

namespace trainyard::agent {

// A host's place among those that get a channel.
struct Seat {
  uint32_t host = 0, hosts = 1;
};
// Nothing: the channel is not for this host's group.
std::optional<Seat> seat_of(const domain::Channel& channel, const std::vector<domain::InstanceGroup>& groups,
                            domain::HostIndex host);

// All objects of a channel, in its order.
struct ChannelObjects {
  std::vector<Download> all;
  std::string prefix_uri;  // what the keys of all begin with, as a URI: "s3://data/in/"
};

// What a listing of the channel's prefix says. A key's path is what follows the prefix, or, when the prefix
// ends within a name, what follows its last slash. Keys that end in a slash are directory markers of consoles
// and are left out.
Result<ChannelObjects> objects_of_listing(const domain::Channel& channel, const objects::Location& prefix,
                                          const std::vector<objects::ObjectInfo>& listed);

// Lists the channel's prefix, or reads its manifest. Errors also: invalid, for a channel of another kind.
Result<ChannelObjects> list_channel(objects::Objects& objects, const domain::Channel& channel,
                                    const Interruption& interruption);

// Those of this host, in the order of the first epoch: ShardedByS3Key deals them out in turn, after a shuffle
// where there is a seed. Errors: invalid: two of them would be the same file.
Result<std::vector<Download>> share_of_channel(const domain::Channel& channel, std::vector<Download> all,
                                               const Seat& seat);

struct Downloaded {
  size_t files = 0;
  uint64_t bytes = 0;             // as far as the listing says them
  std::vector<std::string> keys;  // in their order, relative to prefix_uri
  std::string prefix_uri;
};

// Lists, deals and fetches the channel into `directory`.
Result<Downloaded> download_channel(objects::Objects& objects, const domain::Channel& channel,
                                    const Seat& seat, const Tree& directory,
                                    const Interruption& interruption);

// What a channel in Pipe mode streams.
Result<data::Contents> stream_channel(objects::Objects& objects, const domain::Channel& channel,
                                      const Interruption& interruption);

}  // namespace trainyard::agent
