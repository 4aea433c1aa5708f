// Implements the operations on objects: get, head, put, copy. Bodies are copied through a buffer of
// kBodyBufferBytes.
#include "base/log.hpp"
#include "base/text.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

template <class Input>
std::optional<Failure> check_reading(const Context& context, const Input& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return failure;
  if (auto failure = check_version(in.version_id)) return failure;
  if (in.sse_customer_algorithm) return not_implemented("Objects encrypted with the client's key");
  if (in.part_number && in.range)
    return invalid_request("Cannot specify both Range header and partNumber query parameter");
  if (in.part_number)
    if (auto number = part_number(in.part_number); !number) return number.failure(s3::kService);
  return std::nullopt;
}

// Returns the range that a get or head requests; nothing = the whole object.
template <class Input>
std::optional<objects::Range> requested_range(const Input& in) {
  if (!in.part_number) return read_range(in.range);
  objects::Range range;
  range.part = uint32_t(*in.part_number);
  return range;
}

// Makes the head of the response to a get: the object's properties and the range that is sent.
template <class Output, class Input>
Outcome<Output> describe(objects::Reader& reader, bool ranged, const Input& in) {
  const objects::ObjectInfo& info = reader.info();
  const objects::Range range = reader.range();
  const auto parts = in.part_number ? reader.parts() : std::vector<objects::PartInfo>();
  Output out;
  out.accept_ranges = "bytes";
  out.last_modified = info.modified;
  out.content_length = int64_t(range.last - range.first + 1);
  out.e_tag = quoted_etag(info.etag);
  out.content_type = in.response_content_type.value_or(info.content_type);
  const auto header = [&](const char* name,
                          const std::optional<std::string>& instead) -> std::optional<std::string> {
    if (instead) return instead;
    const auto found = info.headers.find(name);
    return found == info.headers.end() ? std::nullopt : std::optional(found->second);
  };
  out.cache_control = header("cache-control", in.response_cache_control);
  out.content_disposition = header("content-disposition", in.response_content_disposition);
  out.content_encoding = header("content-encoding", in.response_content_encoding);
  out.content_language = header("content-language", in.response_content_language);
  out.expires =
      header("expires", in.response_expires ? std::optional(to_http_date(*in.response_expires))
                                            : std::nullopt);
  // As on S3, the class STANDARD is left out.
  out.storage_class = header(objects::kStorageClassHeader, std::nullopt);
  out.website_redirect_location = header(kRedirectLocation, std::nullopt);
  if (!info.metadata.empty()) out.metadata = info.metadata;
  if (!info.tags.empty()) out.tag_count = int64_t(info.tags.size());
  if (!parts.empty()) out.parts_count = int64_t(parts.size());
  if (ranged && *out.content_length > 0)
    out.content_range = "bytes " + std::to_string(range.first) + "-" + std::to_string(range.last) +
                        "/" + std::to_string(info.bytes);
  // Checksums are of a whole object or a whole part, so they are left out for a range.
  if ((!ranged || in.part_number) && in.checksum_mode && !info.checksums.empty()) {
    set_checksums(out, parts.empty() ? info.checksums
                                     : TRY_S3(reader.part_checksums(uint32_t(*in.part_number)),
                                              *in.bucket, *in.key));
    out.checksum_type = checksum_type_of(info.checksums);
  }
  return out;
}

// Makes the failure for a range or a part that does not exist, with the actual size or count.
template <class Input>
Failure reading_failure(objects::Objects& objects, const Input& in, const Error& error) {
  Failure failure = s3_failure_of(error, *in.bucket, *in.key);
  if (error.is(objects::Fault::part_missing))
    failure.details = {{"PartNumberRequested", std::to_string(*in.part_number)}};
  if (!error.is(objects::Fault::bad_range)) return failure;
  failure.details = {{"RangeRequested", in.range.value_or("")}};
  if (const auto info = objects.head(*in.bucket, *in.key))
    failure.details.emplace_back("ActualObjectSize", std::to_string(info->bytes));
  return failure;
}

template <class Output>
int status_of(const Output& out) {
  return out.content_range ? 206 : 200;
}

template <class Input>
Conditions conditions_of(const Input& in) {
  return {in.if_match, in.if_none_match, in.if_modified_since, in.if_unmodified_since};
}

Outcome<std::optional<s3::GetObjectOutput>> get_object(objects::Objects& objects,
                                                       const Context& context,
                                                       const s3::GetObjectRequest& in,
                                                       Exchange<s3::GetObject>& exchange) {
  if (auto failure = check_reading(context, in)) return *failure;
  const auto requested = requested_range(in);
  auto opened = objects.get(*in.bucket, *in.key, requested);
  if (!opened) return reading_failure(objects, in, opened.error());
  const auto reader = *std::move(opened);
  if (auto failure = check_conditions(conditions_of(in), reader->info(), true)) return *failure;
  auto out = describe<s3::GetObjectOutput>(*reader, requested.has_value(), in);
  if (!out) return out.failure(s3::kService);
  // Read the first bytes before the head is sent, so that an unreadable or corrupt object can still
  // be reported.
  std::vector<char> buffer(kBodyBufferBytes);
  auto first = reader->read(buffer);
  if (!first)
    log(Level::error, "api", "an object cannot be read",
        {{"request", context.request_id}, {"why", first.error().message}});
  size_t bytes = TRY_S3(std::move(first), *in.bucket, *in.key);
  // From here on only the body can be sent. An error closes the connection, so the client notices
  // the missing bytes.
  const auto sent = [&]() -> Result<void> {
    TRY(exchange.start(*out, uint64_t(*out->content_length), status_of(*out)));
    for (; bytes > 0; bytes = TRY(reader->read(buffer)))
      TRY(exchange.write(std::span(buffer).first(bytes)));
    return ok();
  }();
  if (!sent)
    log(sent.error().kind == Kind::corrupt ? Level::error : Level::debug, "api",
        "the response to a get was aborted",
        {{"request", context.request_id}, {"why", sent.error().message}});
  return std::optional<s3::GetObjectOutput>();
}

Outcome<std::optional<s3::HeadObjectOutput>> head_object(objects::Objects& objects,
                                                         const Context& context,
                                                         const s3::HeadObjectRequest& in,
                                                         Exchange<s3::HeadObject>& exchange) {
  if (auto failure = check_reading(context, in)) return *failure;
  const auto requested = requested_range(in);
  auto opened = objects.get(*in.bucket, *in.key, requested);
  if (!opened) return reading_failure(objects, in, opened.error());
  const auto reader = *std::move(opened);
  if (auto failure = check_conditions(conditions_of(in), reader->info(), true)) return *failure;
  auto out = describe<s3::HeadObjectOutput>(*reader, requested.has_value(), in);
  if (!out) return out.failure(s3::kService);
  (void)!exchange.start(*out, uint64_t(*out->content_length),
                        status_of(*out));  // a disconnected client needs no answer
  return std::optional<s3::HeadObjectOutput>();
}

Outcome<std::optional<s3::PutObjectOutput>> put_object(objects::Objects& objects,
                                                       const Context& context,
                                                       const s3::PutObjectRequest& in,
                                                       Exchange<s3::PutObject>& exchange) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  if (auto failure = check_not_here(in)) return *failure;
  if (in.write_offset_bytes)
    return not_implemented(
        "A header you provided implies functionality that is not implemented: "
        "x-amz-write-offset-bytes");
  auto conditions = write_conditions(in.if_match, in.if_none_match);
  if (!conditions) return std::move(conditions).error();
  auto checksums = announced_checksums(exchange.head());
  if (!checksums) return std::move(checksums).error();
  auto tags = read_tags(in.tagging);
  if (!tags) return std::move(tags).error();
  objects::PutOptions options = put_options_of(in);
  set_class(in, options);
  options.tags = *std::move(tags);
  options.owner = context.principal.name;
  options.bytes = exchange.body_bytes();
  options.md5 = in.content_md5;
  if (options.md5) {
    const auto decoded = from_base64(*options.md5);
    if (!decoded || decoded->size() != 16)
      return s3_failure(400, "InvalidDigest", "The Content-MD5 you specified is not valid.");
  }
  options.checksums = *checksums;
  options.only_if_absent = conditions->only_if_absent;
  options.only_if_etag = conditions->only_if_etag;
  const auto writer = TRY_S3(objects.put(*in.bucket, *in.key, options), *in.bucket, *in.key);
  TRY_S3(pass_body(exchange, *writer), *in.bucket, *in.key);
  const auto info = TRY_S3(writer->commit(), *in.bucket, *in.key);
  s3::PutObjectOutput out;
  out.e_tag = quoted_etag(info.etag);
  set_checksums(out, info.checksums);
  if (!info.checksums.empty()) out.checksum_type = "FULL_OBJECT";
  return std::optional(std::move(out));
}

Outcome<s3::CopyObjectOutput> copy_object(objects::Objects& objects, const Context& context,
                                          const s3::CopyObjectRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  if (auto failure = check_owner(context, in.expected_source_bucket_owner)) return *failure;
  if (auto failure = check_not_here(in)) return *failure;
  auto source = read_copy_source(*in.copy_source);
  if (!source) return std::move(source).error();
  const bool replace = in.metadata_directive && *in.metadata_directive == "REPLACE";
  auto conditions = write_conditions(in.if_match, in.if_none_match);
  if (!conditions) return std::move(conditions).error();
  const bool replace_tags = in.tagging_directive && *in.tagging_directive == "REPLACE";
  auto tags = read_tags(replace_tags ? in.tagging : std::nullopt);
  if (!tags) return std::move(tags).error();
  const bool changes = replace || replace_tags || in.storage_class ||
                       in.website_redirect_location || in.server_side_encryption;
  if (!changes && source->bucket == *in.bucket && source->key == *in.key)
    return invalid_request(
        "This copy request is illegal because it is trying to copy an object to itself without "
        "changing the object's metadata, storage class, website redirect location or encryption "
        "attributes.");
  const auto reader = TRY_S3(objects.get(source->bucket, source->key), source->bucket, source->key);
  const objects::ObjectInfo& from = reader->info();
  if (auto failure =
          check_conditions({in.copy_source_if_match, in.copy_source_if_none_match,
                            in.copy_source_if_modified_since, in.copy_source_if_unmodified_since},
                           from, false))
    return *failure;
  objects::PutOptions options;
  if (replace) {
    options = put_options_of(in);
  } else {
    options.content_type = from.content_type;
    options.headers = from.headers;
    options.metadata = from.metadata;
  }
  set_class(in, options);
  options.tags = replace_tags ? *std::move(tags) : from.tags;
  options.owner = context.principal.name;
  options.bytes = from.bytes;
  options.only_if_absent = conditions->only_if_absent;
  options.only_if_etag = conditions->only_if_etag;
  if (in.checksum_algorithm) {
    auto algorithm = checksum_name(*in.checksum_algorithm);
    if (!algorithm) return std::move(algorithm).error();
    options.checksums[*algorithm] = "";
  } else {
    for (const auto& [algorithm, value] : from.checksums) options.checksums[algorithm] = "";
  }
  const auto writer = TRY_S3(objects.put(*in.bucket, *in.key, options), *in.bucket, *in.key);
  TRY_S3(pass_object(*reader, *writer), *in.bucket, *in.key);
  const auto info = TRY_S3(writer->commit(), *in.bucket, *in.key);
  s3::CopyObjectOutput out;
  describe_copy(out.copy_object_result.emplace(), info);
  return out;
}

}  // namespace

void add_objects(OperationTable& table, objects::Objects& objects) {
  table.add_streamed<s3::GetObject>([&](const Context& context, const s3::GetObjectRequest& in,
                                        Exchange<s3::GetObject>& exchange) {
    return get_object(objects, context, in, exchange);
  });
  table.add_streamed<s3::HeadObject>([&](const Context& context, const s3::HeadObjectRequest& in,
                                         Exchange<s3::HeadObject>& exchange) {
    return head_object(objects, context, in, exchange);
  });
  table.add_streamed<s3::PutObject>([&](const Context& context, const s3::PutObjectRequest& in,
                                        Exchange<s3::PutObject>& exchange) {
    return put_object(objects, context, in, exchange);
  });
  table.add<s3::CopyObject>([&](const Context& context, const s3::CopyObjectRequest& in) {
    return copy_object(objects, context, in);
  });
}

}  // namespace trainyard::api::s3
