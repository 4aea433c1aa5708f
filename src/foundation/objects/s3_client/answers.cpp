#include "objects/s3_client/answers.hpp"

#include "base/text.hpp"
#include "objects/names.hpp"

namespace trainyard::objects {
namespace {

struct ErrorMeaning {
  std::string_view code;
  Kind kind;
  std::optional<Fault> fault;
};

constexpr ErrorMeaning kErrorMeanings[] = {
    {"NoSuchBucket", Kind::not_found, Fault::bucket_missing},
    {"NoSuchKey", Kind::not_found, Fault::key_missing},
    {"NoSuchUpload", Kind::not_found, Fault::upload_missing},
    {"BucketAlreadyExists", Kind::conflict, Fault::bucket_exists},
    {"BucketAlreadyOwnedByYou", Kind::conflict, Fault::bucket_exists},
    {"BucketNotEmpty", Kind::conflict, Fault::bucket_not_empty},
    {"PreconditionFailed", Kind::conflict, Fault::key_exists},
    {"ConditionalRequestConflict", Kind::conflict, {}},
    {"InvalidBucketName", Kind::invalid, Fault::bad_bucket_name},
    {"KeyTooLongError", Kind::invalid, Fault::key_too_long},
    {"InvalidRange", Kind::invalid, Fault::bad_range},
    {"InvalidPart", Kind::invalid, Fault::part_invalid},
    {"InvalidPartNumber", Kind::invalid, Fault::part_missing},
    {"InvalidPartOrder", Kind::invalid, Fault::part_order},
    {"EntityTooSmall", Kind::invalid, Fault::part_too_small},
    {"BadDigest", Kind::corrupt, Fault::checksum_mismatch},
    {"XAmzContentSHA256Mismatch", Kind::corrupt, Fault::checksum_mismatch},
    {"XAmzContentChecksumMismatch", Kind::corrupt, Fault::checksum_mismatch},
    {"IncompleteBody", Kind::corrupt, Fault::length_mismatch},
    {"AccessDenied", Kind::denied, {}},
    {"InvalidAccessKeyId", Kind::denied, {}},
    {"SignatureDoesNotMatch", Kind::denied, {}},
    {"ExpiredToken", Kind::denied, {}},
    {"SlowDown", Kind::unavailable, {}},
    {"RequestTimeout", Kind::unavailable, {}},
};

Kind kind_of_status(int status) {
  if (status == 401 || status == 403) return Kind::denied;
  if (status == 404) return Kind::not_found;
  if (status == 409 || status == 412) return Kind::conflict;
  if (status == 429 || status == 408) return Kind::unavailable;
  if (status == 507) return Kind::exhausted;
  if (status >= 500) return Kind::unavailable;
  return Kind::invalid;
}

}  // namespace

Refusal refusal_of(const HttpAnswer& answer, const std::string& doing) {
  std::string code, explanation;
  bool etag_differs = false;
  if (const auto xml = parse_xml(answer.body); xml && xml->name == "Error") {
    code = xml->text_of("Code");
    etag_differs = code == "PreconditionFailed" && xml->text_of("Condition") == "If-Match";
    explanation = xml->text_of("Message");
  }
  std::string message = doing + ": " + std::to_string(answer.status);
  if (!code.empty()) message += " " + shorten(to_utf8(code), 100);
  if (!explanation.empty()) message += ": " + shorten(to_utf8(explanation), 500);
  if (code.empty() && !answer.body.empty()) message += ": " + shorten(to_utf8(answer.body), 200);

  Refusal refusal{{kind_of_status(answer.status), std::move(message)}};
  for (const auto& meaning : kErrorMeanings) {
    if (meaning.code != code) continue;
    refusal.error.kind = meaning.kind;
    if (meaning.fault) refusal.error.detail = *meaning.fault;
  }
  if (etag_differs) refusal.error.detail = Fault::etag_differs;
  if (code.empty() && answer.status == 416) refusal.error.detail = Fault::bad_range;
  if (code.empty() && answer.status == 412) refusal.error.detail = Fault::key_exists;
  // RequestTimeTooSkewed: the clock may have been set after signing; the retry is signed again.
  refusal.nothing_changed =
      answer.status == 503 || answer.status == 429 || code == "RequestTimeTooSkewed";
  // ExpiredToken: the keys may have been renewed when the retry calls S3Settings::keys.
  refusal.is_temporary = refusal.nothing_changed || answer.status == 500 || answer.status == 502 ||
                         answer.status == 504 || code == "RequestTimeout" || code == "ExpiredToken";
  return refusal;
}

std::string without_quotes(std::string etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    return etag.substr(1, etag.size() - 2);
  return etag;
}

Result<uint64_t> number_of(const std::string& text, const char* what, uint64_t least,
                           uint64_t most) {
  const auto number = parse_int(text);
  if (!number || *number < 0)
    return corrupt(std::string("invalid ") + what + " in the endpoint's answer: '" +
                   shorten(to_utf8(text), 40) + "'");
  if (uint64_t(*number) < least || uint64_t(*number) > most)
    return corrupt(std::string("invalid ") + what + " in the endpoint's answer: " + text +
                   " is not within " + std::to_string(least) + " to " + std::to_string(most));
  return uint64_t(*number);
}

Result<uint64_t> length_of(const std::string& text) {
  return number_of(text, "length", 0, kObjectBytesMax);
}

Result<uint32_t> part_number_of(const std::string& text) {
  return uint32_t(TRY(number_of(text, "part number", 1, kPartsMax)));
}

Result<Instant> instant_of(const std::string& text) {
  auto instant = parse_iso8601(text);
  if (!instant)
    return corrupt("invalid time in the endpoint's answer: '" + shorten(to_utf8(text), 40) + "'");
  return instant;
}

Result<Range> content_range_of(const HttpHead& head) {
  const std::string text = head.get("content-range");  // "bytes 0-9/1234"
  const size_t space = text.find(' '), dash = text.find('-'), slash = text.find('/');
  if (space == text.npos || dash == text.npos || slash == text.npos || dash < space || slash < dash)
    return corrupt("invalid range in the endpoint's answer: '" + shorten(to_utf8(text), 60) + "'");
  const uint64_t first = TRY(length_of(text.substr(space + 1, dash - space - 1)));
  const uint64_t last = TRY(length_of(text.substr(dash + 1, slash - dash - 1)));
  return Range{first, last};
}

Result<ObjectInfo> object_info_of(const HttpHead& head, const std::string& key) {
  ObjectInfo info;
  info.key = key;
  info.etag = without_quotes(head.get("etag"));
  info.content_type = head.get("content-type");
  const auto modified = parse_http_date(head.get("last-modified"));
  if (modified) info.modified = *modified;
  const std::string range = head.get("content-range");  // "bytes 0-9/1234"
  info.bytes = TRY(
      length_of(range.empty() ? head.get("content-length") : range.substr(range.rfind('/') + 1)));
  for (const auto& [name, value] : head.headers) {
    constexpr std::string_view kMetadata = "x-amz-meta-", kChecksum = "x-amz-checksum-";
    if (name.starts_with(kMetadata)) info.metadata[name.substr(kMetadata.size())] = value;
    if (name.starts_with(kChecksum) && name != "x-amz-checksum-type")
      info.checksums[name.substr(kChecksum.size())] = value;
    for (const char* kept :
         {"cache-control", "content-disposition", "content-encoding", "content-language", "expires",
          kStorageClassHeader, "x-amz-website-redirect-location"})
      if (name == kept) info.headers[name] = value;
  }
  return info;
}

}  // namespace trainyard::objects
