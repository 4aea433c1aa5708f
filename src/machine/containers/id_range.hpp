// Whose ids a container runs under: root inside is nobody on this machine.
//
// Each container gets a range of user and group ids that no account and no other container uses; id 0 inside
// is the range's first. A range is claimed by a file of its number below /run/trainyard/ids, which holds the
// claimer's name, and is given back by that name. Where we ourselves run inside a user namespace (an ordinary
// user's server) there is one range for all: what that namespace has.
//
// Threads: callable from anywhere, from several processes at once. Errors: exhausted (no range is free), and
// those of files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace trainyard::containers {

inline constexpr uint32_t kIdsOfRange = 65536;  // what images use, "nobody" (65534) included
// Between what systemd gives to its containers and the half of the numbers that programs take for negative.
inline constexpr uint32_t kFirstRange = 0x70000000;
inline constexpr uint32_t kRangesMax = 4096;

struct IdRange {
  uint32_t first = 0;
  uint32_t count = kIdsOfRange;
  // Of a range that is not the machine's: how many ids lie together in the namespace that we are in, again and again. A
  // map of ours may not cross their borders. Empty: all of them.
  std::vector<uint32_t> user_pieces = {}, group_pieces = {};
  // Whether ids inside are others than ours: mounts must be mapped then.
  bool shifted() const { return first != 0; }
};

// Pure: how many ids from 0 on the text of /proc/self/uid_map maps without a gap; kIdsOfRange at most. And
// whether it is the machine's own map.
struct OwnIds {
  uint32_t count = 0;
  bool whole_machine = false;
  std::vector<uint32_t> pieces = {};  // counts of its lines, until `count`
};
OwnIds parse_own_ids(std::string_view uid_map);

// `owner`: the name of a container's cgroup. Claiming twice gives the same range. `alive` says whether the
// owner of a claim still has a container; a claim without one is taken over.
Result<IdRange> claim_id_range(const std::string& owner, bool (*alive)(const std::string& owner));
void release_id_range(const std::string& owner, uint32_t first);

// One line of a map of ids: `count` ids from `inside` on are those from `outside` on.
struct IdMap {
  uint32_t inside = 0, outside = 0, count = 1;
};

// A user namespace with those maps, held by a descriptor; nothing runs in it. Errors: denied, exhausted, by errno.
Result<os::File> make_user_namespace(const IdMap& users, const IdMap& groups);
// The namespace of a container with that range.
Result<os::File> make_user_namespace(const IdRange& range);

// Whether this machine lets a process have a user namespace with a /proc of its own, which a container needs: some
// (containers of others, mostly) do not. Asks the kernel by trying. Errors: denied, by errno.
Result<void> try_user_namespace();

}  // namespace trainyard::containers
