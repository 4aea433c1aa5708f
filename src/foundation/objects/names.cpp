#include "objects/names.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::objects {
namespace {

constexpr size_t kMetadataBytesMax = 2 << 10;  // as S3
constexpr size_t kHeaderBytesMax = 8 << 10;    // as S3's limit on all headers of a PUT

std::string in_quotes(std::string_view text) { return "'" + shorten(to_utf8(text), 200) + "'"; }

Result<Range> range_of_part(uint32_t number, uint64_t bytes, const std::vector<PartInfo>& parts) {
  if (parts.empty() && number == 1) return Range{0, bytes - 1};
  uint64_t begin = 0;
  for (const auto& part : parts) {
    if (part.number == number) return Range{begin, begin + part.bytes - 1};
    begin += part.bytes;
  }
  return invalid("the object has no part " + std::to_string(number), Fault::part_missing);
}

}  // namespace

Result<void> check_bucket_name(std::string_view bucket) {
  const auto bad = [&](const char* why) {
    return invalid("invalid bucket name " + in_quotes(bucket) + ": " + why, Fault::bad_bucket_name);
  };
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (bucket.size() < 3 || bucket.size() > 63) return bad("it must have 3 to 63 characters");
  for (const char c : bucket)
    if (!letter_or_digit(c) && c != '.' && c != '-')
      return bad("only a-z, 0-9, '.' and '-' are allowed");
  if (!letter_or_digit(bucket.front()) || !letter_or_digit(bucket.back()))
    return bad("it must start and end with a letter or a digit");
  if (bucket.find("..") != bucket.npos) return bad("consecutive dots are not allowed");
  const auto parts = split(bucket, '.');
  const bool address =
      parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
        return !part.empty() && part.size() <= 3 &&
               part.find_first_not_of("0123456789") == part.npos;
      });
  if (address) return bad("an IP address is not allowed");
  return ok();
}

Result<void> check_key(std::string_view key) {
  if (key.empty()) return invalid("invalid key: it must have at least one byte");
  if (key.size() > kKeyBytesMax)
    return invalid("invalid key: at most " + std::to_string(kKeyBytesMax) +
                       " bytes are allowed, it has " + std::to_string(key.size()),
                   Fault::key_too_long);
  if (key.find('\0') != key.npos)
    return invalid("invalid key " + in_quotes(key) + ": it must not contain a NUL byte");
  if (!is_utf8(key)) return invalid("invalid key " + in_quotes(key) + ": it must be UTF-8");
  return ok();
}

Result<void> check_tags(const std::map<std::string, std::string>& tags, size_t tags_max) {
  if (tags.size() > tags_max) return invalid("invalid tags: more than " + std::to_string(tags_max));
  for (const auto& [name, value] : tags)
    if (!is_utf8(name) || !is_utf8(value) || count_characters(name) > kTagKeyCharactersMax ||
        count_characters(value) > kTagValueCharactersMax)
      return invalid("invalid tag " + in_quotes(name) + ": it must be UTF-8 of at most " +
                     std::to_string(kTagKeyCharactersMax) + " and " +
                     std::to_string(kTagValueCharactersMax) + " characters");
  return ok();
}

Result<void> check_options(const PutOptions& options) {
  const auto bytes_of = [](const std::map<std::string, std::string>& fields) {
    size_t bytes = 0;
    for (const auto& [name, value] : fields) bytes += name.size() + value.size();
    return bytes;
  };
  if (bytes_of(options.metadata) > kMetadataBytesMax)
    return invalid("invalid metadata: more than " + std::to_string(kMetadataBytesMax) + " bytes");
  if (bytes_of(options.headers) + options.content_type.size() > kHeaderBytesMax)
    return invalid("invalid headers: more than " + std::to_string(kHeaderBytesMax) + " bytes");
  for (const auto* fields : {&options.metadata, &options.headers})
    for (const auto& [name, value] : *fields)
      if (!is_utf8(name) || !is_utf8(value))
        return invalid("invalid metadata " + in_quotes(name) + ": it must be UTF-8");
  if (!is_utf8(options.content_type)) return invalid("invalid content type: it must be UTF-8");
  return check_tags(options.tags, kTagsMax);
}

Error no_bucket(std::string_view bucket) {
  return not_found("bucket " + in_quotes(bucket) + " not found", Fault::bucket_missing);
}
Error no_key(std::string_view bucket, std::string_view key) {
  return not_found("key " + in_quotes(key) + " not found in bucket " + in_quotes(bucket),
                   Fault::key_missing);
}
Error no_upload(std::string_view upload_id) {
  return not_found(
      "upload " + in_quotes(upload_id) + " not found; it may have been completed or aborted",
      Fault::upload_missing);
}
Error key_exists(std::string_view bucket, std::string_view key) {
  return conflict("key " + in_quotes(key) + " already exists in bucket " + in_quotes(bucket),
                  Fault::key_exists);
}
Result<void> check_etag(const std::string& bucket, const ObjectInfo& replaced,
                        const std::string& only_if_etag) {
  if (only_if_etag == "*" || only_if_etag == replaced.etag) return ok();
  return conflict("key " + in_quotes(replaced.key) + " in bucket " + in_quotes(bucket) +
                      " has the ETag " + replaced.etag + ", not the requested one",
                  Fault::etag_differs);
}
Result<void> check_unchanged(const std::string& bucket, const ObjectInfo& present,
                             const ObjectInfo& seen) {
  TRY(check_etag(bucket, present, seen.etag));
  const bool retagged = !seen.tags.empty() && seen.tags != present.tags;
  if (present.modified == seen.modified && !retagged) return ok();
  return conflict("key " + in_quotes(present.key) + " in bucket " + in_quotes(bucket) +
                      (retagged ? " has other tags" : " was written again with the same content"),
                  Fault::etag_differs);
}
Error bucket_exists(std::string_view bucket) {
  return conflict("bucket " + in_quotes(bucket) + " already exists", Fault::bucket_exists);
}
Error bucket_not_empty(std::string_view bucket) {
  return conflict("bucket " + in_quotes(bucket) + " is not empty", Fault::bucket_not_empty);
}

Result<Range> resolve_range(const std::optional<Range>& range, uint64_t bytes,
                            const std::vector<PartInfo>& parts) {
  if (!range) return Range{0, bytes - 1, {}};
  if (range->part) return range_of_part(*range->part, bytes, parts);
  const auto bad = [&] {
    return invalid("invalid range: it contains no byte of the object, which has " +
                       std::to_string(bytes) + " bytes",
                   Fault::bad_range);
  };
  if (bytes == 0) return bad();
  if (range->from_end) {
    if (*range->from_end == 0) return bad();
    return Range{bytes - std::min(bytes, *range->from_end), bytes - 1, {}};
  }
  if (range->first >= bytes || range->last < range->first) return bad();
  return Range{range->first, std::min(range->last, bytes - 1), {}};
}

}  // namespace trainyard::objects
