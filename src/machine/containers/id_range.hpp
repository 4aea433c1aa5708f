// Claims the ranges of user and group ids under which containers run: a container's root has no
// rights on this machine.
//
// Each container gets a range of ids that no account and no other container uses; id 0 of the
// container is the first id of its range. A claim is a file below /run/trainyard/ids, named by the
// range's number, with the claimer's name in it; a range is released by that name. In a user
// namespace (an ordinary user's server) there is one range for all: the ids of that namespace.
//
// Threads: callable from anywhere, from several processes at once. Errors: exhausted (no free
// range), and those of files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::containers {

inline constexpr uint32_t kIdsOfRange = 65536;  // ids that images use, "nobody" (65534) included
// Between systemd's ranges for containers and the half of the numbers that programs take for
// negative.
inline constexpr uint32_t kFirstRange = 0x70000000;
inline constexpr uint32_t kRangesMax = 4096;

struct IdRange {
  uint32_t first = 0;
  uint32_t count = kIdsOfRange;
  // For ids of a user namespace: the sizes of its consecutive pieces. A nested map may not cross
  // their borders.
  // Empty: one piece.
  std::vector<uint32_t> user_pieces = {}, group_pieces = {};
  // True if the container's ids differ from the machine's: mounts must be mapped then.
  bool shifted() const { return first != 0; }
};

// Ids that the text of /proc/self/uid_map maps from 0 on without a gap, at most kIdsOfRange, and
// whether it is the machine's own map.
struct OwnIds {
  uint32_t count = 0;
  bool whole_machine = false;
  std::vector<uint32_t> pieces = {};  // counts of its lines, until `count`
};
OwnIds parse_own_ids(std::string_view uid_map);

// Claims a range. `owner`: the name of a container's cgroup. Claiming twice gives the same range.
// `alive` tells whether the owner of a claim still has a container; if not, its claim is taken
// over.
Result<IdRange> claim_id_range(const std::string& owner, bool (*alive)(const std::string& owner));
void release_id_range(const std::string& owner, uint32_t first);

// One line of an id map: `count` ids from `inside` on are those from `outside` on.
struct IdMap {
  uint32_t inside = 0, outside = 0, count = 1;
};

// Makes a user namespace with those maps, held by a descriptor and without a process. Errors:
// denied, exhausted, by errno.
Result<os::File> make_user_namespace(const IdMap& users, const IdMap& groups);
// Makes the namespace of a container with that range.
Result<os::File> make_user_namespace(const IdRange& range);

// Checks, by trying, that this machine permits a user namespace with a /proc of its own, which a
// container needs: most containers of other runtimes do not permit it. Errors: denied, by errno.
Result<void> try_user_namespace();

}  // namespace trainyard::containers
