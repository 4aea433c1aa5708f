// Encodes the file `bucket` of a bucket. Grammar: docs/formats/objects.md.
//
// Threads: pure except for read_bucket_file. Errors: corrupt, and those of files.
#pragma once

#include <string>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

std::string encode_bucket(const BucketInfo& bucket);
// `path`: of the bucket's directory.
Result<BucketInfo> read_bucket_file(const std::string& name, const std::string& path);

}  // namespace trainyard::objects
