// Declares the helpers of S3's operations: S3's failures for errors of `objects`, conditions,
// ranges, checksums, bodies.
//
// Threads: pure functions, except those that take an exchange or a reader.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "objects/objects.hpp"
#include "operations/context.hpp"
#include "operations/identity_store.hpp"
#include "operations/table.hpp"
#include "protocol/errors.hpp"
#include "s3/bucket_settings.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api::s3 {

// The buffer for a body on its way to or from the disk: large enough that system calls cost little,
// and small enough for many streams at once.
inline constexpr size_t kBodyBufferBytes = 256 << 10;

// Converts an error of `objects` to a failure, with S3's name if the error's fault has one.
Failure s3_failure_of(const Error& error, std::string_view bucket, std::string_view key);

// Evaluates to the value of EXPRESSION, a Result of `objects`; on error returns the S3 failure from
// the enclosing function.
#define TRY_S3(expression, bucket, key)                                             \
  ({                                                                                \
    auto try_s3_result_ = (expression);                                             \
    if (!try_s3_result_) return s3_failure_of(try_s3_result_.error(), bucket, key); \
    std::move(try_s3_result_).value();                                              \
  })

// Returns a failure if the request expects the bucket to belong to another account.
std::optional<Failure> check_owner(const Context& context,
                                   const std::optional<std::string>& expected);

inline constexpr std::string_view kNullVersion = "null";  // of every object: none has another
// Returns a failure for the ID of any other version.
std::optional<Failure> check_version(const std::optional<std::string>& version_id);

// Reads the number of a part: 1 to kPartsMax.
Outcome<uint32_t> part_number(const std::optional<int64_t>& requested);

// Reads "bytes=0-9", "bytes=5-", "bytes=-3". Returns nothing for any other text, for which S3
// returns the whole object.
std::optional<objects::Range> read_range(const std::optional<std::string>& header);

std::string quoted_etag(const std::string& etag);
// Returns whether `header` ("\"abc\"", "abc, def", "*") names the ETag.
bool names_etag(std::string_view header, std::string_view etag);

// Conditions are If-Match and similar headers.
struct Conditions {
  std::optional<std::string> if_match, if_none_match;
  std::optional<Instant> if_modified_since, if_unmodified_since;
};
// Returns a failure if a condition does not hold. `reading`: the request is a get or head.
std::optional<Failure> check_conditions(const Conditions& conditions,
                                        const objects::ObjectInfo& info, bool reading);

// WriteConditions are the conditions on the object that a write replaces, as in
// objects::PutOptions.
struct WriteConditions {
  bool only_if_absent = false;
  std::string only_if_etag;
};
Outcome<WriteConditions> write_conditions(const std::optional<std::string>& if_match,
                                          const std::optional<std::string>& if_none_match);

// Reads "bucket/key" or "/bucket/key", percent-encoded, optionally with "?versionId=null".
Outcome<objects::Location> read_copy_source(const std::string& source);

// Convert between S3's names of checksum algorithms ("CRC32") and those of `objects` ("crc32").
Outcome<std::string> checksum_name(std::string_view s3_name);
std::string s3_checksum_name(std::string_view name);
std::string checksum_type_of(const std::map<std::string, std::string>& checksums);

// Returns the checksums in the head of a request, and those that it announces as trailers.
Outcome<std::map<std::string, std::string>> announced_checksums(const net::RequestHead& head);

template <class Input>
std::map<std::string, std::string> given_checksums(const Input& in) {
  std::map<std::string, std::string> checksums;
  if (in.checksum_crc32) checksums["crc32"] = *in.checksum_crc32;
  if (in.checksum_crc32_c) checksums["crc32c"] = *in.checksum_crc32_c;
  if (in.checksum_crc64_nvme) checksums["crc64nvme"] = *in.checksum_crc64_nvme;
  if (in.checksum_sha1) checksums["sha1"] = *in.checksum_sha1;
  if (in.checksum_sha256) checksums["sha256"] = *in.checksum_sha256;
  return checksums;
}

template <class Output>
void set_checksums(Output& out, const std::map<std::string, std::string>& checksums) {
  const auto set = [&](const char* name, std::optional<std::string>& member) {
    const auto found = checksums.find(name);
    if (found != checksums.end()) member = found->second;
  };
  set("crc32", out.checksum_crc32);
  set("crc32c", out.checksum_crc32_c);
  set("crc64nvme", out.checksum_crc64_nvme);
  set("sha1", out.checksum_sha1);
  set("sha256", out.checksum_sha256);
}

// Sets the result of CopyObject or UploadPartCopy. `info`: the new object's or part's.
template <class Result, class Info>
void describe_copy(Result& result, const Info& info) {
  result.e_tag = quoted_etag(info.etag);
  result.last_modified = info.modified;
  set_checksums(result, info.checksums);
}

// Returns the headers and metadata of an object in a put, a copy or an upload.
template <class Input>
objects::PutOptions put_options_of(const Input& in) {
  objects::PutOptions options;
  if (in.content_type) options.content_type = *in.content_type;
  if (in.metadata) options.metadata = *in.metadata;
  const auto keep = [&](const char* name, const std::optional<std::string>& value) {
    if (value && !value->empty()) options.headers[name] = *value;
  };
  keep("cache-control", in.cache_control);
  keep("content-disposition", in.content_disposition);
  keep("content-encoding", in.content_encoding);
  keep("content-language", in.content_language);
  keep("expires", in.expires);
  return options;
}

// Two headers of an object are stored and returned, but have no effect: its storage class, unless
// STANDARD, and the address to which a website would redirect.
inline constexpr const char* kRedirectLocation = "x-amz-website-redirect-location";
std::optional<Failure> check_class(const std::optional<std::string>& storage_class,
                                   const std::optional<std::string>& redirect_location);
// Sets both headers of `options`, or removes them: as on S3, a copy does not inherit them.
template <class Input>
void set_class(const Input& in, objects::PutOptions& options) {
  const auto set = [&](const char* name, const std::optional<std::string>& value) {
    options.headers.erase(name);
    if (value && !value->empty() && *value != "STANDARD") options.headers[name] = *value;
  };
  set(objects::kStorageClassHeader, in.storage_class);
  set(kRedirectLocation, in.website_redirect_location);
}
std::string storage_class_of(const objects::ObjectInfo& info);

// Returns whether an access list gives access to others. Access lists are disabled, as in S3's new
// buckets; policies give access instead.
inline bool is_of_others(const std::optional<std::string>& acl) {
  return acl && *acl != "private" && !acl->starts_with("bucket-owner-");
}
Failure acl_not_supported();

// Returns a failure for unsupported options: encryption with the client's keys, access for others,
// locks.
template <class Input>
std::optional<Failure> check_not_here(const Input& in) {
  const auto refused = [](std::string_view what) {
    return not_implemented("A header you provided implies functionality that is not implemented: " +
                           std::string(what));
  };
  if (is_of_others(in.acl) || in.grant_full_control || in.grant_read || in.grant_read_acp ||
      in.grant_write_acp)
    return acl_not_supported();
  if (auto failure = check_class(in.storage_class, in.website_redirect_location)) return failure;
  if (in.sse_customer_algorithm) return refused("x-amz-server-side-encryption-customer-algorithm");
  // "aws:kms" without a key is accepted, since the SageMaker SDK sends it by default. No response
  // confirms it.
  if (in.ssekms_key_id && !in.ssekms_key_id->empty())
    return refused(
        "x-amz-server-side-encryption-aws-kms-key-id. This server has no KMS keys: leave out "
        "output_kms_key, kms_key and kms_key_id (SageMaker SDK), SSEKMSKeyId (boto3) or "
        "--sse-kms-key-id (AWS CLI), and keep the data directory on an encrypted disk.");
  if (in.object_lock_mode || in.object_lock_retain_until_date || in.object_lock_legal_hold_status ||
      in.object_lock_event_hold)
    return refused("x-amz-object-lock-*");
  return std::nullopt;
}

// Reads the tags of the header x-amz-tagging: "team=blue&run=7", percent-encoded.
using Tags = std::map<std::string, std::string>;
Outcome<Tags> read_tags(const std::optional<std::string>& header);
Outcome<Tags> read_bucket_tags(const std::optional<std::vector<shapes::s3::Tag>>& set);

// Copies the request's body and the checksums of its trailers to the writer. Errors: those of the
// exchange and of the writer.
template <class Operation>
Result<void> pass_body(Exchange<Operation>& exchange, objects::Writer& writer) {
  std::vector<char> buffer(kBodyBufferBytes);
  for (;;) {
    const size_t bytes = TRY(exchange.read(buffer));
    if (bytes == 0) break;
    TRY(writer.write(std::span(buffer).first(bytes)));
  }
  constexpr std::string_view kChecksum = "x-amz-checksum-";
  for (const auto& [name, value] : exchange.trailers())
    if (name.starts_with(kChecksum)) writer.expect_checksum(name.substr(kChecksum.size()), value);
  return ok();
}

// Copies a whole object from the reader to the writer.
Result<void> pass_object(objects::Reader& reader, objects::Writer& writer);

using SharedSettings = std::shared_ptr<BucketSettings>;
void add_buckets(OperationTable& table, objects::Objects& objects, IdentityStore* identities,
                 const SharedSettings& settings);
// `identities` nullptr: buckets have no policies.
void add_policies(OperationTable& table, objects::Objects& objects, IdentityStore* identities,
                  const SharedSettings& settings);
// Removes the policy of a bucket: when it is deleted, and before a bucket of that name is created.
Result<void> remove_policy(IdentityStore* identities, const std::string& bucket);
void add_lists(OperationTable& table, objects::Objects& objects);
void add_objects(OperationTable& table, objects::Objects& objects);
void add_attributes(OperationTable& table, objects::Objects& objects);
void add_defaults(OperationTable& table, objects::Objects& objects);
void add_settings(OperationTable& table, objects::Objects& objects, Random& random,
                  const SharedSettings& settings);
Result<void> put_ownership(BucketSettings& settings, const Principal& principal,
                           const std::string& bucket,
                           const shapes::s3::OwnershipControls& controls);
void add_tagging(OperationTable& table, objects::Objects& objects);
void add_uploads(OperationTable& table, objects::Objects& objects);

}  // namespace trainyard::api::s3
