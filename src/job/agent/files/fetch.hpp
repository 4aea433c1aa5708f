// Fetches objects of a store into files of this machine: many at once, and large ones in several
// parts at once.
//
// Uses kFetchesMax buffers of memory, for objects of any size. All parts of an object are of one
// version: if the object was replaced meanwhile, the error is unavailable, and the caller lists
// again. Bytes are compared with the object's checksum: a whole object with any, one that is
// fetched in parts with a CRC of all its bytes. An object whose bytes differ is fetched once more.
//
// Threads: fetch_all() starts up to kFetchesMax threads and joins them. Errors: the object store's,
// those of files, cancelled: interrupted, corrupt (bytes_damaged): the bytes differed twice; the
// first one, naming its key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/files/tree.hpp"
#include "agent/interruption.hpp"
#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::agent {

// The number of fetches at once: enough to fill a link to a store with a latency of some
// milliseconds.
inline constexpr size_t kFetchesMax = 8;
// The bytes of one request: large enough that its start costs little, small enough that one object
// of some hundred megabytes keeps all threads busy.
inline constexpr uint64_t kPieceBytes = 32 << 20;

struct Download {
  std::string bucket;
  std::string key;
  std::string path;  // below the directory: "a/b.csv"
  uint64_t bytes = 0;
  std::string etag;       // as listed; "" = unknown: the object is fetched in one part
  Instant modified = {};  // as listed
};

// Checks that all downloads fit into `free_bytes` of a disk; `what` names them for the user.
// Errors: exhausted: they do not fit, or a length exceeds kObjectBytesMax.
Result<void> check_disk_space(const std::vector<Download>& downloads, uint64_t free_bytes,
                              const std::string& what);

// Requires: paths come from key_paths.hpp; no other thread writes below `directory` meanwhile.
Result<void> fetch_all(objects::Objects& objects, const std::vector<Download>& downloads,
                       const Tree& directory, const Interruption& interruption);

}  // namespace trainyard::agent
