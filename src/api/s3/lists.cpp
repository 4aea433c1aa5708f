// Implements the operations that list and delete objects.
#include <algorithm>

#include "base/text.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

constexpr int64_t kKeysPageMax = 1000;  // as on S3, for lists and for DeleteObjects

// Checks the requested encoding: keys may have characters that XML cannot represent, so clients may
// request them percent-encoded.
class Encoding {
 public:
  static Outcome<Encoding> read(const std::optional<std::string>& requested) {
    if (requested && !equals_ignoring_case(*requested, "url"))
      return invalid_argument("Invalid Encoding Method specified in Request");
    return Encoding(requested.has_value());
  }
  std::string operator()(const std::string& text) const {
    return url_ ? percent_encode(text, true) : text;
  }
  std::optional<std::string> operator()(const std::optional<std::string>& text) const {
    if (!text) return text;
    return (*this)(*text);
  }
  std::optional<std::string> name() const {
    return url_ ? std::optional<std::string>("url") : std::nullopt;
  }

 private:
  explicit Encoding(bool url) : url_(url) {}
  bool url_;
};

Outcome<int64_t> page_size(const std::optional<int64_t>& requested) {
  if (!requested) return kKeysPageMax;
  if (*requested < 0)
    return invalid_argument("Argument maxKeys must be an integer between 0 and 2147483647");
  return std::min(*requested, kKeysPageMax);
}

// Sets the members that both versions of ListObjects share.
template <class Output>
void show_page(Output& out, const objects::ListPage& page, const Encoding& encode,
               const std::optional<s3::Owner>& owner) {
  auto& contents = out.contents.emplace();
  for (const auto& object : page.objects)
    contents.push_back({.key = encode(object.key),
                        .last_modified = object.modified,
                        .e_tag = quoted_etag(object.etag),
                        .size = int64_t(object.bytes),
                        .storage_class = storage_class_of(object),
                        .owner = owner});
  auto& prefixes = out.common_prefixes.emplace();
  for (const auto& prefix : page.prefixes) prefixes.push_back({.prefix = encode(prefix)});
  out.is_truncated = !page.next.empty();
}

Outcome<s3::ListObjectsV2Output> list_objects_v2(objects::Objects& objects, const Context& context,
                                                 const s3::ListObjectsV2Request& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  auto encode = Encoding::read(in.encoding_type);
  if (!encode) return std::move(encode).error();
  auto keys_max = page_size(in.max_keys);
  if (!keys_max) return std::move(keys_max).error();
  objects::ListQuery query{in.prefix.value_or(""), in.delimiter.value_or(""),
                           in.start_after.value_or(""), size_t(*keys_max)};
  if (in.continuation_token) {
    auto token = from_base64(*in.continuation_token);
    if (!token || token->empty())
      return invalid_argument("The continuation token provided is incorrect");
    query.start_after = *token;
  }
  const auto page = TRY_S3(objects.list(*in.bucket, query), *in.bucket, "");
  s3::ListObjectsV2Output out;
  std::optional<s3::Owner> owner;
  if (in.fetch_owner.value_or(false)) owner = s3::Owner{.id = context.principal.account};
  show_page(out, page, *encode, owner);
  out.name = *in.bucket;
  out.prefix = (*encode)(in.prefix.value_or(""));
  out.delimiter = (*encode)(in.delimiter);
  if (!in.continuation_token) out.start_after = (*encode)(in.start_after);
  out.max_keys = *keys_max;
  out.key_count = int64_t(page.objects.size() + page.prefixes.size());
  out.encoding_type = encode->name();
  out.continuation_token = in.continuation_token;
  if (!page.next.empty()) out.next_continuation_token = to_base64(page.next);
  return out;
}

Outcome<s3::ListObjectsOutput> list_objects(objects::Objects& objects, const Context& context,
                                            const s3::ListObjectsRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  auto encode = Encoding::read(in.encoding_type);
  if (!encode) return std::move(encode).error();
  auto keys_max = page_size(in.max_keys);
  if (!keys_max) return std::move(keys_max).error();
  const objects::ListQuery query{in.prefix.value_or(""), in.delimiter.value_or(""),
                                 in.marker.value_or(""), size_t(*keys_max)};
  const auto page = TRY_S3(objects.list(*in.bucket, query), *in.bucket, "");
  s3::ListObjectsOutput out;
  show_page(out, page, *encode, s3::Owner{.id = context.principal.account});
  out.name = *in.bucket;
  out.prefix = (*encode)(in.prefix.value_or(""));
  out.delimiter = (*encode)(in.delimiter);
  out.marker = (*encode)(in.marker.value_or(""));
  out.max_keys = *keys_max;
  out.encoding_type = encode->name();
  if (!page.next.empty() && !query.delimiter.empty()) out.next_marker = (*encode)(page.next);
  return out;
}

// Lists versions: each object has one, with the ID "null", since no bucket keeps versions.
Outcome<s3::ListObjectVersionsOutput> list_versions(objects::Objects& objects,
                                                    const Context& context,
                                                    const s3::ListObjectVersionsRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  auto encode = Encoding::read(in.encoding_type);
  if (!encode) return std::move(encode).error();
  auto keys_max = page_size(in.max_keys);
  if (!keys_max) return std::move(keys_max).error();
  const std::string after = in.key_marker.value_or("");
  if (in.version_id_marker && after.empty())
    return invalid_argument("A version-id marker cannot be specified without a key marker.");
  if (in.version_id_marker && in.version_id_marker->empty())
    return invalid_argument("A version-id marker cannot be empty.");
  if (in.version_id_marker && *in.version_id_marker != "null")
    return invalid_argument("Invalid version id specified");
  const objects::ListQuery query{in.prefix.value_or(""), in.delimiter.value_or(""), after,
                                 size_t(*keys_max)};
  const auto page = TRY_S3(objects.list(*in.bucket, query), *in.bucket, "");
  s3::ListObjectVersionsOutput out;
  auto& versions = out.versions.emplace();
  for (const auto& object : page.objects)
    versions.push_back({.e_tag = quoted_etag(object.etag),
                        .size = int64_t(object.bytes),
                        .storage_class = storage_class_of(object),
                        .key = (*encode)(object.key),
                        .version_id = std::string(kNullVersion),
                        .is_latest = true,
                        .last_modified = object.modified,
                        .owner = s3::Owner{.id = context.principal.account}});
  auto& prefixes = out.common_prefixes.emplace();
  for (const auto& prefix : page.prefixes) prefixes.push_back({.prefix = (*encode)(prefix)});
  out.is_truncated = !page.next.empty();
  out.name = *in.bucket;
  out.prefix = (*encode)(query.prefix);
  out.delimiter = (*encode)(in.delimiter);
  out.key_marker = (*encode)(after);
  out.version_id_marker = in.version_id_marker.value_or("");
  out.max_keys = *keys_max;
  out.encoding_type = encode->name();
  if (page.next.empty()) return out;
  out.next_key_marker = (*encode)(page.next);
  const bool is_key = !page.objects.empty() && page.objects.back().key == page.next;
  if (is_key) out.next_version_id_marker = std::string(kNullVersion);
  return out;
}

Outcome<s3::DeleteObjectsOutput> delete_objects(objects::Objects& objects, const Context& context,
                                                const s3::DeleteObjectsRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  if (!in.delete_ || !in.delete_->objects || in.delete_->objects->empty() ||
      int64_t(in.delete_->objects->size()) > kKeysPageMax)
    return s3_failure(400, "MalformedXML",
                      "The XML you provided was not well-formed or did not validate against our "
                      "published schema");
  TRY_S3(objects.head_bucket(*in.bucket), *in.bucket, "");
  s3::DeleteObjectsOutput out;
  for (const auto& one : *in.delete_->objects) {
    const std::string key = one.key.value_or("");
    std::optional<Failure> failure = check_version(one.version_id);
    if (!failure)
      if (const auto removed = objects.remove(*in.bucket, key); !removed)
        failure = s3_failure_of(removed.error(), *in.bucket, key);
    if (failure) {
      if (!out.errors) out.errors.emplace();
      out.errors->push_back({.key = key,
                             .version_id = one.version_id,
                             .code = failure->code,
                             .message = failure->message});
    } else if (!in.delete_->quiet.value_or(false)) {
      if (!out.deleted) out.deleted.emplace();
      out.deleted->push_back({.key = key, .version_id = one.version_id});
    }
  }
  return out;
}

Outcome<s3::DeleteObjectOutput> delete_object(objects::Objects& objects, const Context& context,
                                              const s3::DeleteObjectRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  if (auto failure = check_version(in.version_id)) return *failure;
  if (in.if_match || in.if_match_size || in.if_match_last_modified_time)
    return not_implemented(
        "A header you provided implies functionality that is not implemented: If-Match of a "
        "DELETE");
  TRY_S3(objects.remove(*in.bucket, *in.key), *in.bucket, *in.key);
  return s3::DeleteObjectOutput{};
}

}  // namespace

void add_lists(OperationTable& table, objects::Objects& objects) {
  table.add<s3::ListObjectsV2>([&](const Context& context, const s3::ListObjectsV2Request& in) {
    return list_objects_v2(objects, context, in);
  });
  table.add<s3::ListObjects>([&](const Context& context, const s3::ListObjectsRequest& in) {
    return list_objects(objects, context, in);
  });
  table.add<s3::ListObjectVersions>(
      [&](const Context& context, const s3::ListObjectVersionsRequest& in) {
        return list_versions(objects, context, in);
      });
  table.add<s3::DeleteObjects>([&](const Context& context, const s3::DeleteObjectsRequest& in) {
    return delete_objects(objects, context, in);
  });
  table.add<s3::DeleteObject>([&](const Context& context, const s3::DeleteObjectRequest& in) {
    return delete_object(objects, context, in);
  });
}

}  // namespace trainyard::api::s3
