#include "objects/directory/record.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.hpp"
#include "base/json.hpp"
#include "objects/checksum.hpp"
#include "objects/directory/part_list.hpp"
#include "objects/directory/upload_file.hpp"

namespace trainyard::objects {
namespace {

constexpr std::string_view kMagic = "TYOBJ001";
constexpr size_t kFirstReadBytes = 4096;  // contains nearly every record, in one read

void append_little_endian(std::string& bytes, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) bytes += char(value >> (8 * i) & 255);
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | uint8_t(bytes[i]);
  return value;
}

Result<std::map<std::string, std::string>> texts_at(const Json& record, const char* name) {
  std::map<std::string, std::string> texts;
  const auto found = record.find(name);
  if (found == record.end()) return texts;
  if (!found->is_object()) return corrupt(std::string("its ") + name + " must be an object");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) return corrupt(std::string("its ") + name + " must be strings");
    texts[key] = value.get<std::string>();
  }
  return texts;
}

Result<Record> parse(std::string_view text, uint64_t object_bytes) {
  const Json json = TRY(parse_json(text));
  Record record;
  record.info.key = TRY(string_at(json, "key"));
  record.info.bytes = object_bytes;
  record.info.etag = TRY(string_at(json, "etag"));
  record.info.modified = from_milliseconds(TRY(int_at(json, "modified_ms")));
  record.info.content_type = TRY(string_at(json, "content_type"));
  record.info.headers = TRY(texts_at(json, "headers"));
  record.info.metadata = TRY(texts_at(json, "metadata"));
  record.info.checksums = TRY(texts_at(json, "checksums"));
  if (json.contains("owner")) record.info.owner = TRY(string_at(json, "owner"));
  if (json.contains("upload_id")) record.upload_id = TRY(string_at(json, "upload_id"));
  if (!json.contains("parts")) return record;
  const int64_t parts = TRY(int_at(json, "parts")), bytes = TRY(int_at(json, "bytes"));
  if (bytes < 0 || uint64_t(bytes) > kObjectBytesMax)
    return corrupt("invalid length " + std::to_string(bytes) + ": not within 0 to " +
                   std::to_string(kObjectBytesMax));
  if (parts < 1 || parts > kPartsMax || object_bytes != part_list_bytes(uint32_t(parts)))
    return corrupt("its list of parts has another length");
  if (!is_upload_id(record.upload_id)) return corrupt("its upload ID is invalid");
  record.parts = uint32_t(parts);
  record.info.bytes = uint64_t(bytes);
  return record;
}

Result<std::string> read_end(int descriptor, uint64_t file_bytes, size_t bytes) {
  std::string end(std::min<uint64_t>(bytes, file_bytes), '\0');
  for (size_t done = 0; done < end.size();) {
    const ssize_t read = pread(descriptor, end.data() + done, end.size() - done,
                               off_t(file_bytes - end.size() + done));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return from_errno("reading");
    if (read == 0) return corrupt("it ended early");
    done += size_t(read);
  }
  return end;
}

}  // namespace

uint64_t body_bytes(const Record& record) {
  return record.parts > 0 ? part_list_bytes(record.parts) : record.info.bytes;
}

std::string encode_record(const Record& record) {
  Json json = {{"key", record.info.key},
               {"etag", record.info.etag},
               {"modified_ms", to_milliseconds(record.info.modified)},
               {"content_type", record.info.content_type}};
  if (!record.info.headers.empty()) json["headers"] = record.info.headers;
  if (!record.info.metadata.empty()) json["metadata"] = record.info.metadata;
  if (!record.info.checksums.empty()) json["checksums"] = record.info.checksums;
  if (!record.info.owner.empty()) json["owner"] = record.info.owner;
  if (!record.upload_id.empty()) json["upload_id"] = record.upload_id;
  if (record.parts > 0) {
    json["parts"] = record.parts;
    json["bytes"] = record.info.bytes;
  }
  std::string bytes = dump(json);
  CHECK(bytes.size() <= kRecordBytesMax, "check_options bounds what goes into a record");
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
    return corrupt("the file has another length than when it was written");
  if (end.size() < record_bytes + kTailBytes) return std::optional<Record>();
  const std::string_view text = end.substr(end.size() - kTailBytes - record_bytes, record_bytes);
  const std::string sum = checksum_of("crc32c", text);
  if (!std::equal(sum.rbegin(), sum.rend(), tail.begin() + 12))
    return corrupt("its record fails its checksum");
  auto record = parse(text, object_bytes);
  if (!record) return corrupt("its record cannot be read: " + record.error().message);
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
  return corrupt(path + ": its record is cut off");
}

}  // namespace trainyard::objects
