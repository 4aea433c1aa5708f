// Implements the operations on the tags of buckets and objects, and reads the tags that other
// requests have in a header.
#include "base/text.hpp"
#include "objects/names.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

bool is_tag_text(std::string_view text) {
  for (const char c : text) {
    const bool ascii = uint8_t(c) < 0x80;
    const bool letter_or_digit =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (ascii && !letter_or_digit &&
        std::string_view(" +-=._:/@").find(c) == std::string_view::npos)
      return false;
  }
  return true;
}

Failure invalid_tag(std::string message) {
  return s3_failure(400, "InvalidTag", std::move(message));
}

enum class Tagged { object, bucket };

// Checks tags by S3's rules, with its texts.
std::optional<Failure> add_tag(Tags& tags, std::string key, std::string value, Tagged what) {
  if (key.empty() || count_characters(key) > objects::kTagKeyCharactersMax || !is_tag_text(key))
    return invalid_tag("The TagKey you have provided is invalid");
  if (count_characters(value) > objects::kTagValueCharactersMax || !is_tag_text(value))
    return invalid_tag("The TagValue you have provided is invalid");
  if (key.starts_with("aws:"))
    return invalid_tag(what == Tagged::bucket ? "System tags cannot be added/updated by requester"
                                              : "Your TagKey cannot be prefixed with aws:");
  if (!tags.emplace(std::move(key), std::move(value)).second)
    return invalid_tag("Cannot provide multiple Tags with the same key");
  if (what == Tagged::object && tags.size() > objects::kTagsMax)
    return s3_failure(400, "BadRequest", "Object tags cannot be greater than 10");
  if (tags.size() > objects::kBucketTagsMax)
    return s3_failure(400, "BadRequest", "Bucket tag count cannot be greater than 50");
  return std::nullopt;
}

Outcome<Tags> read_tag_set(const std::optional<std::vector<s3::Tag>>& set, Tagged what) {
  Tags tags;
  if (set)
    for (const auto& tag : *set)
      if (auto failure = add_tag(tags, tag.key.value_or(""), tag.value.value_or(""), what))
        return *failure;
  return tags;
}

template <class Input>
std::optional<Failure> check_tagged(const Context& context, const Input& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return failure;
  return check_version(in.version_id);
}

Outcome<s3::GetObjectTaggingOutput> get_tags(objects::Objects& objects, const Context& context,
                                             const s3::GetObjectTaggingRequest& in) {
  if (auto failure = check_tagged(context, in)) return *failure;
  const auto info = TRY_S3(objects.head(*in.bucket, *in.key), *in.bucket, *in.key);
  s3::GetObjectTaggingOutput out;
  auto& set = out.tag_set.emplace();
  for (const auto& [key, value] : info.tags) set.push_back({.key = key, .value = value});
  return out;
}

Outcome<s3::PutObjectTaggingOutput> put_tags(objects::Objects& objects, const Context& context,
                                             const s3::PutObjectTaggingRequest& in) {
  if (auto failure = check_tagged(context, in)) return *failure;
  auto tags = read_tag_set(in.tagging->tag_set, Tagged::object);
  if (!tags) return std::move(tags).error();
  TRY_S3(objects.set_tags(*in.bucket, *in.key, *tags), *in.bucket, *in.key);
  return s3::PutObjectTaggingOutput{};
}

Outcome<s3::DeleteObjectTaggingOutput> delete_tags(objects::Objects& objects,
                                                   const Context& context,
                                                   const s3::DeleteObjectTaggingRequest& in) {
  if (auto failure = check_tagged(context, in)) return *failure;
  TRY_S3(objects.set_tags(*in.bucket, *in.key, {}), *in.bucket, *in.key);
  return s3::DeleteObjectTaggingOutput{};
}

Outcome<s3::GetBucketTaggingOutput> get_bucket_tags(objects::Objects& objects,
                                                    const Context& context,
                                                    const s3::GetBucketTaggingRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  const auto info = TRY_S3(objects.head_bucket(*in.bucket), *in.bucket, "");
  if (info.tags.empty()) {
    Failure failure = s3_failure(404, "NoSuchTagSet", "The TagSet does not exist");
    failure.resource = *in.bucket;
    return failure;
  }
  s3::GetBucketTaggingOutput out;
  auto& set = out.tag_set.emplace();
  for (const auto& [key, value] : info.tags) set.push_back({.key = key, .value = value});
  return out;
}

Outcome<s3::Nothing> put_bucket_tags(objects::Objects& objects, const Context& context,
                                     const s3::PutBucketTaggingRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  auto tags = read_bucket_tags(in.tagging->tag_set);
  if (!tags) return std::move(tags).error();
  TRY_S3(objects.set_bucket_tags(*in.bucket, *tags), *in.bucket, "");
  return s3::Nothing{};
}

Outcome<s3::Nothing> delete_bucket_tags(objects::Objects& objects, const Context& context,
                                        const s3::DeleteBucketTaggingRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  TRY_S3(objects.set_bucket_tags(*in.bucket, {}), *in.bucket, "");
  return s3::Nothing{};
}

}  // namespace

Outcome<Tags> read_tags(const std::optional<std::string>& header) {
  Tags tags;
  if (!header) return tags;
  if (header->starts_with("<"))
    return not_implemented(
        "A header you provided implies functionality that is not implemented: x-amz-tagging of a "
        "form");
  for (const auto pair : split(*header, '&')) {
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    auto key = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(equals == pair.npos ? "" : pair.substr(equals + 1), true);
    if (!key || !value || !is_utf8(*key) || !is_utf8(*value) || tags.contains(*key))
      return invalid_argument(
          "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query "
          "parameters without tag name duplicates.");
    if (auto failure = add_tag(tags, *std::move(key), *std::move(value), Tagged::object))
      return *failure;
  }
  return tags;
}

Outcome<Tags> read_bucket_tags(const std::optional<std::vector<s3::Tag>>& set) {
  return read_tag_set(set, Tagged::bucket);
}

void add_tagging(OperationTable& table, objects::Objects& objects) {
  table.add<s3::GetObjectTagging>(
      [&](const Context& context, const s3::GetObjectTaggingRequest& in) {
        return get_tags(objects, context, in);
      });
  table.add<s3::GetBucketTagging>(
      [&](const Context& context, const s3::GetBucketTaggingRequest& in) {
        return get_bucket_tags(objects, context, in);
      });
  table.add<s3::PutBucketTagging>(
      [&](const Context& context, const s3::PutBucketTaggingRequest& in) {
        return put_bucket_tags(objects, context, in);
      });
  table.add<s3::DeleteBucketTagging>(
      [&](const Context& context, const s3::DeleteBucketTaggingRequest& in) {
        return delete_bucket_tags(objects, context, in);
      });
  table.add<s3::PutObjectTagging>(
      [&](const Context& context, const s3::PutObjectTaggingRequest& in) {
        return put_tags(objects, context, in);
      });
  table.add<s3::DeleteObjectTagging>(
      [&](const Context& context, const s3::DeleteObjectTaggingRequest& in) {
        return delete_tags(objects, context, in);
      });
}

}  // namespace trainyard::api::s3
