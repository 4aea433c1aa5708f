// Implements GetObjectAttributes: an object's properties and parts, without its bytes.
#include <algorithm>

#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

constexpr int64_t kPartsPageMax = 1000;  // as on S3
constexpr std::string_view kAttributes[] = {"ETag", "Checksum", "ObjectParts", "StorageClass",
                                            "ObjectSize"};

// Returns the requested page of parts. As on S3, the number of parts is always returned, and parts
// are listed only if they have checksums.
Outcome<s3::GetObjectAttributesParts> page_of_parts(objects::Reader& reader,
                                                    const s3::GetObjectAttributesRequest& in) {
  const auto parts = reader.parts();
  s3::GetObjectAttributesParts out;
  out.total_parts_count = int64_t(parts.size());
  if (reader.info().checksums.empty()) return out;
  const int64_t parts_max =
      std::clamp<int64_t>(in.max_parts.value_or(kPartsPageMax), 0, kPartsPageMax);
  out.max_parts = parts_max;
  out.part_number_marker = std::max<int64_t>(in.part_number_marker.value_or(0), 0);
  out.is_truncated = false;
  auto& listed = out.parts.emplace();
  for (const auto& part : parts) {
    if (part.number <= *out.part_number_marker) continue;
    if (int64_t(listed.size()) == parts_max) {
      out.is_truncated = true;
      break;
    }
    s3::ObjectPart one{.part_number = part.number, .size = int64_t(part.bytes)};
    set_checksums(one, TRY_S3(reader.part_checksums(part.number), *in.bucket, *in.key));
    listed.push_back(std::move(one));
  }
  out.next_part_number_marker =
      listed.empty() ? *out.part_number_marker : *listed.back().part_number;
  return out;
}

Outcome<s3::GetObjectAttributesOutput> get_attributes(objects::Objects& objects,
                                                      const Context& context,
                                                      const s3::GetObjectAttributesRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  if (auto failure = check_version(in.version_id)) return *failure;
  for (const auto& name : *in.object_attributes)
    if (std::ranges::find(kAttributes, name) == std::end(kAttributes))
      return invalid_argument("Invalid attribute name specified.");
  const auto wants = [&](std::string_view name) {
    return std::ranges::find(*in.object_attributes, name) != in.object_attributes->end();
  };
  const auto reader = TRY_S3(objects.get(*in.bucket, *in.key), *in.bucket, *in.key);
  const objects::ObjectInfo& info = reader->info();
  s3::GetObjectAttributesOutput out;
  out.last_modified = info.modified;
  if (wants("ETag")) out.e_tag = info.etag;  // without quotes, unlike everywhere else
  if (wants("StorageClass")) out.storage_class = storage_class_of(info);
  if (wants("ObjectSize")) out.object_size = int64_t(info.bytes);
  if (wants("Checksum") && !info.checksums.empty()) {
    set_checksums(out.checksum.emplace(), info.checksums);
    out.checksum->checksum_type = checksum_type_of(info.checksums);
  }
  if (wants("ObjectParts") && !reader->parts().empty()) {
    auto parts = page_of_parts(*reader, in);
    if (!parts) return std::move(parts).error();
    out.object_parts = *std::move(parts);
  }
  return out;
}

}  // namespace

void add_attributes(OperationTable& table, objects::Objects& objects) {
  table.add<s3::GetObjectAttributes>(
      [&](const Context& context, const s3::GetObjectAttributesRequest& in) {
        return get_attributes(objects, context, in);
      });
}

}  // namespace trainyard::api::s3
