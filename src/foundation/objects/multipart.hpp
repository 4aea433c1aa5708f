// Joins the parts of an upload into one object: checks S3's rules, and computes the ETag and
// checksums of the whole. The caller joins the stored bytes.
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

// `requested`: the parts as the caller lists them; `stored`: the uploaded parts, by number.
// `options`: of start_upload. Errors: invalid (part_order, part_invalid, part_too_small).
Result<Joined> join_parts(const std::vector<PartInfo>& requested,
                          const std::map<uint32_t, PartInfo>& stored, const PutOptions& options,
                          const CompleteOptions& declared);

Result<void> check_part_number(uint32_t part);

}  // namespace trainyard::objects
