// A channel's data: which objects a host gets, under which names, and bringing them there.
//
// Threads: plan_channel() is pure; download_channel() starts threads and joins them.
// Errors: of the user's making (no such bucket, an empty prefix, keys that cannot be files): invalid, denied
// or
//         not_found, in words for FailureReason; exhausted: the disk is full; cancelled: interrupted; others:
//         the object store's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/fetch.hpp"
#include "agent/interruption.hpp"
#include "base/result.hpp"
#include "domain/job.hpp"
#include "objects/objects.hpp"

namespace trainyard::agent {

// From all keys below `from`, the channel's prefix, in order, those of this host. A key's path is what follows the
// prefix, or, when the prefix ends within a name, what follows its last slash. Keys that end in a slash are
// directory markers of consoles and are left out. ShardedByS3Key deals keys out in turn: host k of n gets
// every n-th.
Result<std::vector<Download>> plan_channel(const domain::Channel& channel, const objects::Location& from,
                                           const std::vector<objects::ObjectInfo>& listed,
                                           domain::HostIndex host, uint32_t hosts);

struct Downloaded {
  size_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> paths;  // in order of keys
  std::string prefix_uri;          // what paths are relative to
};

// Lists, plans and fetches the channel into `directory`, which is made.
Result<Downloaded> download_channel(objects::Objects& objects, const domain::Channel& channel,
                                    domain::HostIndex host, uint32_t hosts, const std::string& directory,
                                    const Interruption& interruption);

}  // namespace trainyard::agent
