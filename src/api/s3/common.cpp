#include "s3/common.hpp"

#include <algorithm>
#include <iterator>

#include "base/text.hpp"

namespace trainyard::api::s3 {
namespace {

using namespace objects;

Failure failure_of_fault(Fault fault, const Error& error, std::string_view bucket,
                         std::string_view key) {
  const std::string cause(error.cause());
  switch (fault) {
    case Fault::bucket_missing:
      return no_such_bucket(bucket);
    case Fault::key_missing:
      return no_such_key(key);
    case Fault::upload_missing:
      return no_such_upload("");
    case Fault::bucket_exists:
      return bucket_already_owned_by_you(bucket);
    case Fault::bucket_not_empty:
      return bucket_not_empty(bucket);
    case Fault::key_exists:
      return precondition_failed("If-None-Match");
    case Fault::etag_differs:
      return precondition_failed("If-Match");
    case Fault::part_missing:
      return s3_failure(416, "InvalidPartNumber", "The requested partnumber is not satisfiable");
    case Fault::bad_bucket_name:
      return invalid_bucket_name(bucket);
    case Fault::key_too_long:
      return s3_failure(400, "KeyTooLongError", "Your key is too long");
    case Fault::bad_range:
      return invalid_range();
    case Fault::part_invalid:
      return invalid_part(
          "One or more of the specified parts could not be found. The part may not have been "
          "uploaded, or the specified entity tag may not match the part's entity tag: " +
          cause);
    case Fault::part_order:
      return invalid_part_order();
    case Fault::part_too_small:
      return entity_too_small();
    case Fault::checksum_mismatch:
      return bad_digest(cause);
    case Fault::bytes_damaged:
      return failure_of(shapes::s3::kService, error);
    case Fault::length_mismatch:
      return incomplete_body();
    case Fault::quota_exceeded:
      break;
  }
  return s3_failure(403, "QuotaExceeded", "Refused, since " + cause + ".");
}

}  // namespace

Failure s3_failure_of(const Error& error, std::string_view bucket, std::string_view key) {
  if (const auto fault = error.detail.as<Fault>())
    return failure_of_fault(*fault, error, bucket, key);
  // S3 has no error for a full disk. A transient error would make clients send the whole body
  // again.
  if (error.kind == Kind::exhausted)
    return s3_failure(507, "InsufficientStorage",
                      "The server has no space left for it: " + error.message);
  return failure_of(shapes::s3::kService, error);
}

std::optional<Failure> check_owner(const Context& context,
                                   const std::optional<std::string>& expected) {
  if (!expected || *expected == context.principal.account) return std::nullopt;
  return s3_failure(403, "AccessDenied", "Access Denied");
}

std::optional<Failure> check_version(const std::optional<std::string>& version_id) {
  if (!version_id || *version_id == kNullVersion) return std::nullopt;
  // The text has the form of S3's version IDs. S3 has another error for any other text.
  constexpr size_t kIdCharacters = 32;
  const auto of_id = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '-';
  };
  if (version_id->size() == kIdCharacters && std::ranges::all_of(*version_id, of_id))
    return s3_failure(404, "NoSuchVersion", "The specified version does not exist.");
  Failure failure = invalid_argument("Invalid version id specified");
  failure.details = {{"ArgumentName", "versionId"}, {"ArgumentValue", shorten(*version_id, 60)}};
  return failure;
}

std::optional<Failure> check_class(const std::optional<std::string>& storage_class,
                                   const std::optional<std::string>& redirect_location) {
  constexpr std::string_view kClasses[] = {
      "STANDARD",   "REDUCED_REDUNDANCY",  "STANDARD_IA", "ONEZONE_IA",
      "GLACIER_IR", "INTELLIGENT_TIERING", "GLACIER",     "DEEP_ARCHIVE"};
  if (storage_class && std::ranges::find(kClasses, *storage_class) == std::end(kClasses))
    return s3_failure(400, "InvalidStorageClass", "The storage class you specified is not valid");
  const std::string_view location = redirect_location ? *redirect_location : std::string_view("/");
  for (const std::string_view beginning : {"/", "http://", "https://"})
    if (location.starts_with(beginning)) return std::nullopt;
  return s3_failure(400, "InvalidRedirectLocation",
                    "The website redirect location must have a prefix of 'http://' or 'https://' "
                    "or '/'.");
}

std::string storage_class_of(const ObjectInfo& info) {
  const auto found = info.headers.find(kStorageClassHeader);
  return found == info.headers.end() ? "STANDARD" : found->second;
}

Outcome<uint32_t> part_number(const std::optional<int64_t>& requested) {
  if (requested && *requested >= 1 && *requested <= kPartsMax) return uint32_t(*requested);
  Failure failure =
      invalid_argument("Part number must be an integer between 1 and 10000, inclusive");
  failure.details = {{"ArgumentName", "partNumber"},
                     {"ArgumentValue", std::to_string(requested.value_or(0))}};
  return failure;
}

std::optional<Range> read_range(const std::optional<std::string>& header) {
  constexpr std::string_view kUnit = "bytes=";
  if (!header || !header->starts_with(kUnit)) return std::nullopt;
  const std::string_view range = trim(std::string_view(*header).substr(kUnit.size()));
  const size_t dash = range.find('-');
  if (dash == range.npos) return std::nullopt;
  const auto first = parse_int(range.substr(0, dash)), last = parse_int(range.substr(dash + 1));
  if (dash == 0) {
    if (!last || *last < 0) return std::nullopt;
    return Range{0, UINT64_MAX, uint64_t(*last)};
  }
  if (!first || *first < 0) return std::nullopt;
  if (dash + 1 == range.size()) return Range{uint64_t(*first), UINT64_MAX, {}};
  if (!last || *last < *first) return std::nullopt;
  return Range{uint64_t(*first), uint64_t(*last), {}};
}

std::string quoted_etag(const std::string& etag) { return "\"" + etag + "\""; }

bool names_etag(std::string_view header, std::string_view etag) {
  for (std::string_view one : split(header, ',')) {
    one = trim(one);
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == "*") return true;
    if (one.size() >= 2 && one.front() == '"' && one.back() == '"')
      one = one.substr(1, one.size() - 2);
    if (one == etag) return true;
  }
  return false;
}

std::optional<Failure> check_conditions(const Conditions& conditions, const ObjectInfo& info,
                                        bool reading) {
  // Headers contain whole seconds.
  const Instant modified = std::chrono::floor<std::chrono::seconds>(info.modified);
  const auto unchanged = [&](std::string_view condition) {
    if (!reading) return precondition_failed(condition);
    Failure failure = not_modified();
    failure.details = {{"ETag", quoted_etag(info.etag)},
                       {"Last-Modified", to_http_date(info.modified)}};
    return failure;
  };
  if (conditions.if_match) {
    if (!names_etag(*conditions.if_match, info.etag)) return precondition_failed("If-Match");
  } else if (conditions.if_unmodified_since && modified > *conditions.if_unmodified_since) {
    return precondition_failed("If-Unmodified-Since");
  }
  if (conditions.if_none_match) {
    if (names_etag(*conditions.if_none_match, info.etag)) return unchanged("If-None-Match");
  } else if (conditions.if_modified_since && modified <= *conditions.if_modified_since) {
    return unchanged("If-Modified-Since");
  }
  return std::nullopt;
}

Outcome<WriteConditions> write_conditions(const std::optional<std::string>& if_match,
                                          const std::optional<std::string>& if_none_match) {
  if (if_none_match && (*if_none_match != "*" || if_match))
    return not_implemented(
        "A header you provided implies functionality that is not implemented: If-None-Match other "
        "than *");
  if (!if_match) return WriteConditions{if_none_match.has_value(), ""};
  std::string_view etag = trim(*if_match);
  // S3 accepts ETags without one of their quotes, or without both.
  if (etag.starts_with('"')) etag.remove_prefix(1);
  if (etag.ends_with('"')) etag.remove_suffix(1);
  if (etag.empty()) return invalid_argument("Invalid ETag in If-Match: expected \"ETAG\"");
  return WriteConditions{false, std::string(etag)};
}

Failure acl_not_supported() {
  return s3_failure(400, "AccessControlListNotSupported", "The bucket does not allow ACLs");
}

Outcome<Location> read_copy_source(const std::string& source) {
  std::string_view text = source;
  const size_t question = text.find('?');
  if (question != text.npos) {
    const std::string_view version = text.substr(question + 1);
    constexpr std::string_view kVersion = "versionId=";
    if (!version.starts_with(kVersion)) return invalid_argument("Invalid copy source encoding.");
    if (const std::string id(version.substr(kVersion.size())); !id.empty())
      if (auto failure = check_version(id)) return *std::move(failure);
    text = text.substr(0, question);
  }
  if (text.starts_with('/')) text.remove_prefix(1);
  auto decoded = percent_decode(text);
  if (!decoded) return invalid_argument("Invalid copy source encoding.");
  const size_t slash = decoded->find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == decoded->size())
    return invalid_argument(
        "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
  return Location{decoded->substr(0, slash), decoded->substr(slash + 1)};
}

Outcome<std::string> checksum_name(std::string_view s3_name) {
  const std::string name = to_lower(s3_name);
  for (const char* known : {"crc32", "crc32c", "crc64nvme", "sha1", "sha256"})
    if (name == known) return name;
  return not_implemented("The checksum algorithm " + shorten(s3_name, 40) +
                         " is not implemented; CRC32, CRC32C, CRC64NVME, SHA1 and SHA256 are");
}

std::string s3_checksum_name(std::string_view name) { return to_upper(name); }

std::string checksum_type_of(const std::map<std::string, std::string>& checksums) {
  for (const auto& [algorithm, base64] : checksums)
    if (base64.find('-') != std::string::npos) return "COMPOSITE";
  return "FULL_OBJECT";
}

Outcome<std::map<std::string, std::string>> announced_checksums(const net::RequestHead& head) {
  std::map<std::string, std::string> checksums;
  constexpr std::string_view kChecksum = "x-amz-checksum-";
  for (const auto name : split(head.headers.get("x-amz-trailer"), ',')) {
    const std::string trailer = to_lower(trim(name));
    if (!trailer.starts_with(kChecksum)) continue;
    auto algorithm = checksum_name(std::string_view(trailer).substr(kChecksum.size()));
    if (!algorithm) return std::move(algorithm).error();
    checksums[*algorithm] = "";
  }
  for (const auto& [name, value] : head.headers.fields()) {
    const std::string lower = to_lower(name);
    if (!lower.starts_with(kChecksum) || lower == "x-amz-checksum-type" ||
        lower == "x-amz-checksum-algorithm" || lower == "x-amz-checksum-mode")
      continue;
    auto algorithm = checksum_name(std::string_view(lower).substr(kChecksum.size()));
    if (!algorithm) return std::move(algorithm).error();
    if (value.empty()) return invalid_request("Value for " + lower + " header is invalid.");
    checksums[*algorithm] = value;
  }
  const std::string_view wanted = head.headers.get("x-amz-sdk-checksum-algorithm");
  if (checksums.empty() && !wanted.empty()) {
    auto algorithm = checksum_name(wanted);
    if (!algorithm) return std::move(algorithm).error();
    checksums[*algorithm] = "";
  }
  return checksums;
}

Result<void> pass_object(Reader& reader, Writer& writer) {
  std::vector<char> buffer(kBodyBufferBytes);
  for (;;) {
    const size_t bytes = TRY(reader.read(buffer));
    if (bytes == 0) return ok();
    TRY(writer.write(std::span(buffer).first(bytes)));
  }
}

}  // namespace trainyard::api::s3
