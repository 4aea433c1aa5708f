#include "data/manifest.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::data {

Result<Manifest> read_manifest(std::string_view text) {
  if (text.size() > kManifestBytesMax)
    return invalid("reading a manifest: it exceeds " + human_bytes(kManifestBytesMax));
  const auto document = TRY(parse_json(text).in("the manifest is not JSON"));
  if (!document.is_array() || document.empty())
    return invalid("a manifest must be a JSON array: [{\"prefix\": \"s3://...\"}, \"key\", ...]");
  const auto& first = document.front();
  if (!first.is_object())
    return invalid("a manifest's first entry must be {\"prefix\": \"s3://...\"}");
  Manifest manifest;
  manifest.prefix_uri = TRY(string_at(first, "prefix").in("the manifest's first entry"));
  const auto prefix = TRY(objects::parse_s3_uri(manifest.prefix_uri).in("the manifest's prefix"));
  for (size_t i = 1; i < document.size(); ++i) {
    const auto& entry = document[i];
    if (!entry.is_string() || entry.get_ref<const std::string&>().empty())
      return invalid("the manifest's entry " + std::to_string(i) +
                     " must be a string: the rest of a key after the prefix");
    const auto& rest = entry.get_ref<const std::string&>();
    manifest.entries.push_back({{prefix.bucket, prefix.key + rest}, rest});
  }
  if (manifest.entries.empty())
    return invalid("the manifest must list at least one object after the prefix");
  return manifest;
}

Result<std::vector<std::string_view>> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.size() > kAugmentedLineBytesMax)
      return invalid("the manifest's line " + std::to_string(lines.size() + 1) +
                     " is longer than " + human_bytes(kAugmentedLineBytesMax));
    lines.push_back(line);
  }
  if (lines.empty()) return invalid("the manifest has no lines");
  return lines;
}

Result<std::vector<Attribute>> read_augmented_line(std::string_view line,
                                                   const std::vector<std::string>& names) {
  const auto record = TRY(parse_json(line).in("not JSON"));
  if (!record.is_object()) return invalid("not a JSON object");
  std::vector<Attribute> attributes;
  for (const auto& name : names) {
    const auto found = record.find(name);
    if (found == record.end())
      return invalid("attribute " + shorten(to_utf8(name), 300) + " not found");
    Attribute attribute;
    attribute.text = string_or_dump(*found);
    if (name.ends_with("-ref")) {
      auto from =
          TRY(objects::parse_s3_uri(attribute.text).in("attribute " + shorten(to_utf8(name), 300)));
      if (from.key.empty())
        return invalid("attribute " + shorten(to_utf8(name), 300) + ": '" +
                       shorten(attribute.text, 300) + "' has no key of an object");
      attribute.from = std::move(from);
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

}  // namespace trainyard::data
