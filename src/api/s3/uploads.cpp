// Implements the operations on multipart uploads.
#include "base/text.hpp"
#include "objects/listing.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

constexpr int64_t kPageMax = 1000;  // as on S3, for parts and for uploads

Failure missing_upload(const std::optional<std::string>& id) {
  return no_such_upload(id.value_or(""));
}

Failure upload_failure(const Error& error, const std::string& bucket, const std::string& key,
                       const std::optional<std::string>& id) {
  if (error.is(objects::Fault::upload_missing)) return missing_upload(id);
  return s3_failure_of(error, bucket, key);
}

#define TRY_UPLOAD(expression)                                                              \
  ({                                                                                        \
    auto try_upload_result_ = (expression);                                                 \
    if (!try_upload_result_)                                                                \
      return upload_failure(try_upload_result_.error(), *in.bucket, *in.key, in.upload_id); \
    std::move(try_upload_result_).value();                                                  \
  })

// Reads the range of a copied part, which lies within the source.
Outcome<std::optional<objects::Range>> copied_range(objects::Objects& objects,
                                                    const objects::Location& source,
                                                    const std::optional<std::string>& header) {
  if (!header) return std::optional<objects::Range>();
  const auto range = read_range(header);
  if (!range || range->from_end || range->last == UINT64_MAX)
    return invalid_argument(
        "The x-amz-copy-source-range value must be of the form bytes=first-last where first and "
        "last are the zero-based offsets of the first and last bytes to copy");
  const auto info = TRY_S3(objects.head(source.bucket, source.key), source.bucket, source.key);
  if (range->last >= info.bytes)
    return invalid_argument("Range specified is not valid for source object of size: " +
                            std::to_string(info.bytes));
  return range;
}

// Reads a number in a query, with S3's errors for one that is out of range.
std::optional<Failure> check_count(const std::string& name, const std::optional<int64_t>& value) {
  constexpr int64_t kMax = 2'147'483'647;
  if (!value || (*value >= 0 && *value <= kMax)) return std::nullopt;
  if (*value > kMax)
    return invalid_argument("Provided " + name + " not an integer or within integer range");
  return invalid_argument("Argument " + name + " must be an integer between 0 and 2147483647");
}

Outcome<s3::CreateMultipartUploadOutput> create_upload(objects::Objects& objects,
                                                       const Context& context,
                                                       const s3::CreateMultipartUploadRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  if (auto failure = check_not_here(in)) return *failure;
  objects::PutOptions options = put_options_of(in);
  set_class(in, options);
  options.owner = context.principal.name;
  auto tags = read_tags(in.tagging);
  if (!tags) return std::move(tags).error();
  options.tags = *std::move(tags);
  if (in.checksum_algorithm) {
    auto algorithm = checksum_name(*in.checksum_algorithm);
    if (!algorithm) return std::move(algorithm).error();
    options.checksums[*algorithm] = "";
    options.checksum_of_whole =
        in.checksum_type ? *in.checksum_type == "FULL_OBJECT" : *algorithm == "crc64nvme";
    if (options.checksum_of_whole && !algorithm->starts_with("crc"))
      return invalid_request("The FULL_OBJECT checksum type cannot be used with the " +
                             *in.checksum_algorithm + " checksum algorithm.");
    if (!options.checksum_of_whole && *algorithm == "crc64nvme")
      return invalid_request(
          "The COMPOSITE checksum type cannot be used with the crc64nvme checksum algorithm.");
  }
  const auto id = TRY_S3(objects.start_upload(*in.bucket, *in.key, options), *in.bucket, *in.key);
  s3::CreateMultipartUploadOutput out{.bucket = in.bucket, .key = in.key, .upload_id = id};
  if (in.checksum_algorithm) {
    out.checksum_algorithm = in.checksum_algorithm;
    out.checksum_type = options.checksum_of_whole ? "FULL_OBJECT" : "COMPOSITE";
  }
  return out;
}

Outcome<std::optional<s3::UploadPartOutput>> upload_part(objects::Objects& objects,
                                                         const Context& context,
                                                         const s3::UploadPartRequest& in,
                                                         Exchange<s3::UploadPart>& exchange) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  auto number = part_number(in.part_number);
  if (!number) return std::move(number).error();
  auto checksums = announced_checksums(exchange.head());
  if (!checksums) return std::move(checksums).error();
  objects::PutOptions options;
  options.bytes = exchange.body_bytes();
  options.md5 = in.content_md5;
  options.checksums = *checksums;
  const auto writer =
      TRY_UPLOAD(objects.put_part(*in.bucket, *in.key, *in.upload_id, *number, options));
  TRY_UPLOAD(pass_body(exchange, *writer));
  const auto info = TRY_UPLOAD(writer->commit());
  s3::UploadPartOutput out{.e_tag = quoted_etag(info.etag)};
  set_checksums(out, info.checksums);
  return std::optional(std::move(out));
}

Outcome<s3::UploadPartCopyOutput> upload_part_copy(objects::Objects& objects,
                                                   const Context& context,
                                                   const s3::UploadPartCopyRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  if (auto failure = check_owner(context, in.expected_source_bucket_owner)) return *failure;
  auto number = part_number(in.part_number);
  if (!number) return std::move(number).error();
  auto source = read_copy_source(*in.copy_source);
  if (!source) return std::move(source).error();
  const auto range = copied_range(objects, *source, in.copy_source_range);
  if (!range) return range.failure(s3::kService);
  const auto reader =
      TRY_S3(objects.get(source->bucket, source->key, *range), source->bucket, source->key);
  if (auto failure =
          check_conditions({in.copy_source_if_match, in.copy_source_if_none_match,
                            in.copy_source_if_modified_since, in.copy_source_if_unmodified_since},
                           reader->info(), false))
    return *failure;
  const auto writer = TRY_UPLOAD(objects.put_part(*in.bucket, *in.key, *in.upload_id, *number));
  TRY_UPLOAD(pass_object(*reader, *writer));
  const auto info = TRY_UPLOAD(writer->commit());
  s3::UploadPartCopyOutput out;
  describe_copy(out.copy_part_result.emplace(), info);
  return out;
}

Outcome<s3::CompleteMultipartUploadOutput> complete_upload(
    objects::Objects& objects, const Context& context,
    const s3::CompleteMultipartUploadRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  auto conditions = write_conditions(in.if_match, in.if_none_match);
  if (!conditions) return std::move(conditions).error();
  std::vector<objects::PartInfo> parts;
  if (in.multipart_upload && in.multipart_upload->parts) {
    for (const auto& one : *in.multipart_upload->parts) {
      auto number = part_number(one.part_number);
      if (!number) return std::move(number).error();
      parts.push_back({*number, one.e_tag.value_or(""), 0, {}, given_checksums(one)});
    }
  }
  if (parts.empty())
    return s3_failure(400, "MalformedXML",
                      "The XML you provided was not well-formed or did not validate against our "
                      "published schema");
  objects::CompleteOptions promised;
  promised.only_if_absent = conditions->only_if_absent;
  promised.only_if_etag = conditions->only_if_etag;
  promised.checksums = given_checksums(in);
  if (in.mpu_object_size && *in.mpu_object_size >= 0)
    promised.bytes = uint64_t(*in.mpu_object_size);
  const auto info =
      TRY_UPLOAD(objects.complete_upload(*in.bucket, *in.key, *in.upload_id, parts, promised));
  s3::CompleteMultipartUploadOutput out;
  out.location = "/" + *in.bucket + "/" + percent_encode(*in.key, true);
  out.bucket = in.bucket;
  out.key = in.key;
  out.e_tag = quoted_etag(info.etag);
  set_checksums(out, info.checksums);
  if (!info.checksums.empty()) out.checksum_type = checksum_type_of(info.checksums);
  return out;
}

Outcome<s3::ListPartsOutput> list_parts(objects::Objects& objects, const Context& context,
                                        const s3::ListPartsRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  const auto all = TRY_UPLOAD(objects.list_parts(*in.bucket, *in.key, *in.upload_id));
  for (const auto& [name, value] : {std::pair("max-parts", in.max_parts),
                                    std::pair("part-number-marker", in.part_number_marker)})
    if (auto failure = check_count(name, value)) return *failure;
  const int64_t parts_max = std::min(in.max_parts.value_or(kPageMax), kPageMax);
  s3::ListPartsOutput out;
  out.bucket = in.bucket;
  out.key = in.key;
  out.upload_id = in.upload_id;
  out.max_parts = parts_max;
  out.part_number_marker = in.part_number_marker.value_or(0);
  out.storage_class = "STANDARD";
  out.initiator = s3::Initiator{.id = context.principal.arn};
  out.owner = s3::Owner{.id = context.principal.account};
  out.is_truncated = false;
  auto& parts = out.parts.emplace();
  for (const auto& one : all) {
    if (one.number <= *out.part_number_marker) continue;
    if (int64_t(parts.size()) == parts_max) {
      out.is_truncated = true;
      break;
    }
    s3::Part part{.part_number = one.number,
                  .last_modified = one.modified,
                  .e_tag = quoted_etag(one.etag),
                  .size = int64_t(one.bytes)};
    set_checksums(part, one.checksums);
    parts.push_back(std::move(part));
  }
  out.next_part_number_marker = parts.empty() ? *out.part_number_marker : *parts.back().part_number;
  return out;
}

Outcome<s3::ListMultipartUploadsOutput> list_uploads(objects::Objects& objects,
                                                     const Context& context,
                                                     const s3::ListMultipartUploadsRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  const auto all = TRY_S3(objects.list_uploads(*in.bucket, in.prefix.value_or("")), *in.bucket, "");
  const bool url = in.encoding_type.has_value();
  const auto encode = [&](const std::string& text) {
    return url ? percent_encode(text, true) : text;
  };
  const int64_t uploads_max = std::clamp<int64_t>(in.max_uploads.value_or(kPageMax), 1, kPageMax);
  s3::ListMultipartUploadsOutput out;
  out.bucket = in.bucket;
  out.prefix = encode(in.prefix.value_or(""));
  if (in.delimiter) out.delimiter = encode(*in.delimiter);
  out.key_marker = encode(in.key_marker.value_or(""));
  out.upload_id_marker = in.upload_id_marker.value_or("");
  out.max_uploads = uploads_max;
  out.encoding_type = in.encoding_type;
  out.is_truncated = false;
  auto& uploads = out.uploads.emplace();
  auto& prefixes = out.common_prefixes.emplace();
  const std::string after = in.key_marker.value_or(""), after_id = in.upload_id_marker.value_or("");
  std::string last, last_id;  // the last listed item: a key and its upload, or a prefix
  for (const auto& one : all) {
    const std::string prefix(
        objects::rolled_up(one.key, in.prefix.value_or(""), in.delimiter.value_or("")));
    if (one.key < after || (!prefix.empty() && (prefix == after || prefix == last))) continue;
    if (one.key == after && !after.empty() && (after_id.empty() || one.upload_id <= after_id))
      continue;
    if (int64_t(uploads.size() + prefixes.size()) == uploads_max) {
      out.is_truncated = true;
      out.next_key_marker = encode(last);
      out.next_upload_id_marker = last_id;
      break;
    }
    last = prefix.empty() ? one.key : prefix;
    last_id = prefix.empty() ? one.upload_id : "";
    if (!prefix.empty()) {
      prefixes.push_back({.prefix = encode(prefix)});
      continue;
    }
    uploads.push_back({.upload_id = one.upload_id,
                       .key = encode(one.key),
                       .initiated = one.started,
                       .storage_class = "STANDARD",
                       .owner = s3::Owner{.id = context.principal.account},
                       .initiator = s3::Initiator{.id = context.principal.arn}});
  }
  return out;
}

}  // namespace

void add_uploads(OperationTable& table, objects::Objects& objects) {
  table.add<s3::CreateMultipartUpload>(
      [&](const Context& context, const s3::CreateMultipartUploadRequest& in) {
        return create_upload(objects, context, in);
      });
  table.add_streamed<s3::UploadPart>([&](const Context& context, const s3::UploadPartRequest& in,
                                         Exchange<s3::UploadPart>& exchange) {
    return upload_part(objects, context, in, exchange);
  });
  table.add<s3::UploadPartCopy>([&](const Context& context, const s3::UploadPartCopyRequest& in) {
    return upload_part_copy(objects, context, in);
  });
  table.add_long<s3::CompleteMultipartUpload>(
      [&](const Context& context, const s3::CompleteMultipartUploadRequest& in) {
        return complete_upload(objects, context, in);
      });
  table.add<s3::AbortMultipartUpload>(
      [&](const Context& context,
          const s3::AbortMultipartUploadRequest& in) -> Outcome<s3::AbortMultipartUploadOutput> {
        if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
        TRY_UPLOAD(objects.abort_upload(*in.bucket, *in.key, *in.upload_id));
        return s3::AbortMultipartUploadOutput{};
      });
  table.add<s3::ListParts>([&](const Context& context, const s3::ListPartsRequest& in) {
    return list_parts(objects, context, in);
  });
  table.add<s3::ListMultipartUploads>(
      [&](const Context& context, const s3::ListMultipartUploadsRequest& in) {
        return list_uploads(objects, context, in);
      });
}

}  // namespace trainyard::api::s3
