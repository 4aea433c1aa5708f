// Checks that the parts of an upload can be joined by S3's rules, and computes the ETag and the
// checksums of the joined object. The caller joins the stored bytes.
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

// `requested` are the parts as the client lists them, `stored` the uploaded parts by number, and
// `options` those of start_upload. Errors: invalid (part_order, part_invalid, part_too_small),
// corrupt (`declared` does not match).
Result<Joined> join_parts(const std::vector<PartInfo>& requested,
                          const std::map<uint32_t, PartInfo>& stored, const PutOptions& options,
                          const CompleteOptions& declared);

Result<void> check_part_number(uint32_t part);

}  // namespace trainyard::objects
