#include "objects/directory/bucket_file.hpp"

#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "os/files.hpp"

namespace trainyard::objects {
namespace {

// More than kBucketTagsMax tags of the greatest length, with every character escaped.
constexpr size_t kBucketFileBytesMax = 1 << 20;

constexpr auto kBucket = complete(json_record<BucketInfo>("bucket", [](auto& side, auto& bucket) {
  side("region", bucket.region);
  side("created_ms", bucket.created);
  side.if_set("tags", bucket.tags);
}));

}  // namespace

std::string encode_bucket(const BucketInfo& bucket) { return dump(kBucket.write(bucket)); }

Result<BucketInfo> read_bucket_file(const std::string& name, const std::string& path) {
  const std::string text = TRY(os::read_file(path + "/bucket", kBucketFileBytesMax));
  BucketInfo bucket = TRY(kBucket.read(TRY(parse_json(text).in(path))).in(path));
  bucket.name = name;
  return bucket;
}

}  // namespace trainyard::objects
