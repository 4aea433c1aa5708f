#include "objects/objects.hpp"

#include <vector>

#include "base/text.hpp"

namespace trainyard::objects {

std::string_view fault_of(const Error& error) {
  static constexpr std::string_view kWords[] = {
      fault::kBucketMissing,    fault::kKeyMissing,     fault::kUploadMissing, fault::kBucketExists,
      fault::kBucketNotEmpty,   fault::kKeyExists,      fault::kBadBucketName, fault::kKeyTooLong,
      fault::kBadRange,         fault::kPartInvalid,    fault::kPartOrder,     fault::kPartTooSmall,
      fault::kChecksumMismatch, fault::kLengthMismatch, fault::kQuotaExceeded};
  for (const auto word : kWords) {
    const size_t at = error.message.find(word);
    if (at != std::string::npos && error.message.compare(at + word.size(), 2, ": ") == 0) return word;
  }
  return "";
}

Result<Location> parse_s3_uri(std::string_view uri) {
  constexpr std::string_view kScheme = "s3://";
  if (!uri.starts_with(kScheme))
    return invalid("invalid S3 URI '" + shorten(uri, 200) + "': it must begin with s3://");
  const std::string_view rest = uri.substr(kScheme.size());
  const size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  if (bucket.empty()) return invalid("invalid S3 URI '" + shorten(uri, 200) + "': the bucket is missing");
  return Location{std::string(bucket), slash == rest.npos ? "" : std::string(rest.substr(slash + 1))};
}

Result<std::string> read_all(Objects& objects, const std::string& bucket, const std::string& key,
                             size_t bytes_max) {
  auto reader = TRY(objects.get(bucket, key));
  const uint64_t bytes = reader->info().bytes;
  if (bytes > bytes_max)
    return exhausted("reading s3://" + bucket + "/" + key + ": it has " + human_bytes(bytes) +
                     ", more than the " + human_bytes(bytes_max) + " that are read here");
  std::string text;
  std::vector<char> buffer(64 << 10);
  for (;;) {
    const size_t read = TRY(reader->read(buffer));
    if (read == 0) return text;
    if (text.size() + read > bytes_max)
      return exhausted("reading s3://" + bucket + "/" + key + ": it grew meanwhile");
    text.append(buffer.data(), read);
  }
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
