// Encodes and reads the file `bucket`, which describes a bucket. Grammar: docs/formats/objects.md.
//
// Threads: pure except for read_bucket_file. Errors: corrupt, and those of files.
#pragma once

#include <string>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

std::string encode_bucket(const BucketInfo& bucket);
// Reads the file in the directory `path` of a bucket.
Result<BucketInfo> read_bucket_file(const std::string& name, const std::string& path);

}  // namespace trainyard::objects
