// How the parts of an upload become one object: what S3 demands of them, and what ETag and checksums the
// whole has. Decides; who stores the parts joins them.
//
// Threads: pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct Joined {
  uint64_t bytes = 0;
  std::string etag;
  std::map<std::string, std::string> checksums;
};

// `asked`: the parts as the caller lists them; `stored`: what was uploaded, by number. `options`: of
// start_upload. Errors: invalid (part_order, part_invalid, part_too_small).
Result<Joined> join_parts(const std::vector<PartInfo>& asked, const std::map<uint32_t, PartInfo>& stored,
                          const PutOptions& options, const CompleteOptions& promised);

Result<void> check_part_number(uint32_t part);

}  // namespace trainyard::objects
