#include "objects/directory/record.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "objects/checksum.hpp"
#include "objects/directory/part_list.hpp"
#include "objects/directory/upload_file.hpp"

namespace trainyard::objects {
namespace {

constexpr std::string_view kMagic = "TYOBJ001";
constexpr size_t kFirstReadBytes = 4096;  // contains nearly every record, in one read

constexpr auto kRecord = complete(json_record<Record>("record", [](auto& side, auto& record) {
  side("key", record.info.key);
  side("etag", record.info.etag);
  side("modified_ms", record.info.modified);
  side("content_type", record.info.content_type);
  side.if_set("headers", record.info.headers);
  side.if_set("metadata", record.info.metadata);
  side.if_set("checksums", record.info.checksums);
  side.if_set("owner", record.info.owner);
  side.if_set("tags", record.info.tags);
  side.if_set("upload_id", record.upload_id);
  side.if_set("parts", record.parts);
  side.when(record.parts > 0, "bytes", record.info.bytes);
}));

Result<Record> parse(std::string_view text, uint64_t object_bytes) {
  const Json json = TRY(parse_json(text));
  Record record = TRY(kRecord.read(json));
  if (!json.contains("parts")) {
    record.info.bytes = object_bytes;
    return record;
  }
  if (!json.contains("bytes") || record.info.bytes > kObjectBytesMax)
    return corrupt("invalid length " + std::to_string(record.info.bytes) + ": not within 0 to " +
                   std::to_string(kObjectBytesMax));
  if (record.parts < 1 || record.parts > kPartsMax || object_bytes != part_list_bytes(record.parts))
    return corrupt("invalid length of its list of parts");
  if (!is_upload_id(record.upload_id)) return corrupt("its upload ID is invalid");
  return record;
}

Result<std::string> read_end(int descriptor, uint64_t file_bytes, size_t bytes) {
  std::string end(std::min<uint64_t>(bytes, file_bytes), '\0');
  for (size_t done = 0; done < end.size();) {
    const ssize_t read = pread(descriptor, end.data() + done, end.size() - done,
                               off_t(file_bytes - end.size() + done));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return from_errno("reading its record");
    if (read == 0) return corrupt("it ended before its record");
    done += size_t(read);
  }
  return end;
}

}  // namespace

uint64_t body_bytes(const Record& record) {
  return record.parts > 0 ? part_list_bytes(record.parts) : record.info.bytes;
}

std::string encode_record(const Record& record) {
  std::string bytes = dump(kRecord.write(record));
  CHECK(bytes.size() <= kRecordBytesMax, "check_options() limits the size of a record");
  const std::string sum = checksum_of("crc32c", bytes);
  const size_t record_bytes = bytes.size();
  append_little_endian(bytes, body_bytes(record), 8);
  append_little_endian(bytes, record_bytes, 4);
  bytes.append(sum.rbegin(), sum.rend());
  return bytes.append(kMagic);
}

Result<std::optional<Record>> decode_record(std::string_view end, uint64_t file_bytes) {
  if (end.size() < kTailBytes) return corrupt("the file is too short for an object");
  const std::string_view tail = end.substr(end.size() - kTailBytes);
  if (tail.substr(16) != kMagic) return corrupt("the file has no object's tail");
  const uint64_t object_bytes = little_endian(tail.substr(0, 8));
  const uint64_t record_bytes = little_endian(tail.substr(8, 4));
  if (record_bytes > kRecordBytesMax || object_bytes > file_bytes ||
      file_bytes - object_bytes != record_bytes + kTailBytes)
    return corrupt("the length of the file has changed since it was written");
  if (end.size() < record_bytes + kTailBytes) return std::optional<Record>();
  const std::string_view text = end.substr(end.size() - kTailBytes - record_bytes, record_bytes);
  const std::string sum = checksum_of("crc32c", text);
  if (!std::equal(sum.rbegin(), sum.rend(), tail.begin() + 12))
    return corrupt("its record fails its checksum");
  auto record = parse(text, object_bytes);
  if (!record) return corrupt("its record is invalid: " + record.error().message);
  return std::optional(std::move(*record));
}

Result<Record> read_record(int descriptor, const std::string& path) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return from_errno(path);
  const uint64_t file_bytes = uint64_t(status.st_size);
  for (const size_t bytes : {kFirstReadBytes, kRecordBytesMax + kTailBytes}) {
    const std::string end = TRY(read_end(descriptor, file_bytes, bytes).in(path));
    auto record = TRY(decode_record(end, file_bytes).in(path));
    if (record) return std::move(*record);
  }
  return corrupt(path + ": its record is truncated");
}

}  // namespace trainyard::objects
