// Claims the ranges of user and group ids under which containers run, so that the root of a
// container has no rights on this machine.
//
// Each container gets a range of ids that no account and no other container uses; id 0 of the
// container is the first id of its range. A claim is a file below /run/trainyard/ids. Its name is
// the number of the range; its content is the owner's name, which is needed to release the range.
// In a user namespace (the server of an ordinary user) all containers share one range: the ids of
// that namespace.
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

inline constexpr uint32_t kIdsOfRange = 65536;  // ids that images use, including "nobody" (65534)
// Above systemd's ranges for containers, and below the numbers that are negative in 32 bits.
inline constexpr uint32_t kFirstRange = 0x70000000;
inline constexpr uint32_t kRangesMax = 4096;

struct IdRange {
  uint32_t first = 0;
  uint32_t count = kIdsOfRange;
  // For ids of a user namespace: the sizes of its consecutive pieces, since a line of a nested map
  // may not cross their borders. Empty: one piece.
  std::vector<uint32_t> user_pieces = {}, group_pieces = {};
  // Returns true if the container's ids differ from the machine's, so that mounts must be mapped.
  bool shifted() const { return first != 0; }
};

// The ids of this process's user namespace.
struct OwnIds {
  uint32_t count = 0;                 // ids from 0 on without a gap, at most kIdsOfRange
  bool whole_machine = false;         // it is the initial namespace of the machine
  std::vector<uint32_t> pieces = {};  // counts of the lines of the map, until `count`
};
// Parses the text of /proc/self/uid_map.
OwnIds parse_own_ids(std::string_view uid_map);

// Claims a range. `owner` is the name of the container's cgroup; a second claim of the same owner
// returns the same range. `alive` returns true if the owner of a claim still has a container;
// otherwise its range is reused.
Result<IdRange> claim_id_range(const std::string& owner, bool (*alive)(const std::string& owner));
void release_id_range(const std::string& owner, uint32_t first);

// One line of an id map: maps `count` ids from `inside` on to those from `outside` on.
struct IdMap {
  uint32_t inside = 0, outside = 0, count = 1;
};

// Makes a user namespace with these maps and without a process; it exists while the descriptor is
// open. Errors: denied, exhausted, by errno.
Result<os::File> make_user_namespace(const IdMap& users, const IdMap& groups);
// Makes the user namespace of a container with this range.
Result<os::File> make_user_namespace(const IdRange& range);

// Checks that this machine permits a user namespace with its own /proc, which a container needs, by
// making one. Most containers of other runtimes do not permit it. Errors: denied, by errno.
Result<void> try_user_namespace();

}  // namespace trainyard::containers
