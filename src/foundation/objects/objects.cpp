#include "objects/objects.hpp"

#include <vector>

#include "base/enum_table.hpp"
#include "base/text.hpp"
#include "objects/verifier.hpp"

namespace trainyard::objects {

namespace {

Result<std::string> read_once(Objects& objects, const std::string& bucket, const std::string& key,
                              size_t bytes_max) {
  auto reader = TRY(objects.get(bucket, key));
  const uint64_t bytes = reader->info().bytes;
  if (bytes > bytes_max)
    return exhausted("reading s3://" + bucket + "/" + key + ": it has " + human_bytes(bytes) +
                     ", but the limit is " + human_bytes(bytes_max));
  std::string text;
  std::vector<char> buffer(64 << 10);
  for (;;) {
    const size_t read = TRY(reader->read(buffer));
    if (read == 0) return text;
    if (text.size() + read > bytes_max)
      return exhausted("reading s3://" + bucket + "/" + key + ": it grew while it was read");
    text.append(buffer.data(), read);
  }
}

constexpr EnumTable<Fault> kFaults{"fault",
                                   {{Fault::bucket_missing, "bucket_missing"},
                                    {Fault::key_missing, "key_missing"},
                                    {Fault::upload_missing, "upload_missing"},
                                    {Fault::bucket_exists, "bucket_exists"},
                                    {Fault::bucket_not_empty, "bucket_not_empty"},
                                    {Fault::key_exists, "key_exists"},
                                    {Fault::etag_differs, "etag_differs"},
                                    {Fault::bad_bucket_name, "bad_bucket_name"},
                                    {Fault::key_too_long, "key_too_long"},
                                    {Fault::bad_range, "bad_range"},
                                    {Fault::part_invalid, "part_invalid"},
                                    {Fault::part_order, "part_order"},
                                    {Fault::part_too_small, "part_too_small"},
                                    {Fault::part_missing, "part_missing"},
                                    {Fault::checksum_mismatch, "checksum_mismatch"},
                                    {Fault::bytes_damaged, "bytes_damaged"},
                                    {Fault::length_mismatch, "length_mismatch"},
                                    {Fault::quota_exceeded, "quota_exceeded"}}};

}  // namespace

std::string_view to_string(Fault fault) { return kFaults.text(fault); }

Result<Location> parse_s3_uri(std::string_view uri) {
  constexpr std::string_view kScheme = "s3://";
  if (!uri.starts_with(kScheme))
    return invalid("invalid S3 URI '" + shorten(uri, 200) + "': it must start with s3://");
  const std::string_view rest = uri.substr(kScheme.size());
  const size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  if (bucket.empty())
    return invalid("invalid S3 URI '" + shorten(uri, 200) + "': the bucket is missing");
  return Location{std::string(bucket),
                  slash == rest.npos ? "" : std::string(rest.substr(slash + 1))};
}

Result<std::string> read_all(Objects& objects, const std::string& bucket, const std::string& key,
                             size_t bytes_max) {
  return repeat_if_damaged([&] { return read_once(objects, bucket, key, bytes_max); });
}

Result<ObjectInfo> write_all(Objects& objects, const std::string& bucket, const std::string& key,
                             std::string_view bytes, const PutOptions& options) {
  PutOptions exact = options;
  exact.bytes = bytes.size();
  auto writer = TRY(objects.put(bucket, key, exact));
  TRY(writer->write(bytes));
  return writer->commit();
}

}  // namespace trainyard::objects
