#include "domain/image.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/enum_table.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"
#include "domain/deprecated_images.hpp"
#include "domain/image_policy.hpp"

namespace trainyard::domain {
namespace {

constexpr EnumTable<Image::Kind> kImageKinds{
    "image kind",
    {{Image::Kind::machine, "machine"},
     {Image::Kind::oci, "oci"},
     {Image::Kind::containers_storage, "containers-storage"},
     {Image::Kind::registry, "registry"}}};

constexpr auto kImage = json_record<Image>("image", [](auto& side, auto& image) {
  side("kind", image.kind, kImageKinds);
  side("source", image.source);
  side("mounts", image.mounts);
  side("entrypoint", image.entrypoint);
  side("environment", image.environment);
  side("note", image.note);
});

constexpr auto kEgressSettings =
    json_record<EgressSettings>("outward", [](auto& side, auto& settings) {
      side("name_servers", settings.name_servers);
      side("http_proxy", settings.http_proxy);
      side("https_proxy", settings.https_proxy);
      side("no_proxy", settings.no_proxy);
      side("ca_bundle", settings.ca_bundle);
      side("package_index", settings.package_index);
    });

constexpr std::string_view kDocker = "docker://";
constexpr size_t kKnownShownMax = 12;  // limit of known names in an error

bool key_matches(std::string_view key, std::string_view name, const ImageName& parts) {
  if (key == name) return true;
  const std::string tag = parts.tag.empty() ? "" : ":" + parts.tag;
  const std::string digest = parts.digest.empty() ? "" : "@" + parts.digest;
  std::vector<std::string> bases;
  bases.push_back(parts.registry.empty() ? parts.repository
                                         : parts.registry + "/" + parts.repository);
  if (parts.of_aws()) bases.push_back(parts.repository);
  for (const std::string& base : bases)
    for (const std::string& candidate : {base, base + tag, base + tag + digest})
      if (matches_pattern(key, candidate)) return true;
  return false;
}

// Returns the source to pull: a digest takes precedence over a tag.
std::string registry_source(const ImageName& name) {
  const std::string base = name.registry + "/" + name.repository;
  if (!name.digest.empty()) return base + "@" + name.digest;
  return base + ":" + (name.tag.empty() ? "latest" : name.tag);
}

bool is_repository(std::string_view text) {
  return !text.empty() && text.front() != '/' && text.back() != '/' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-/") ==
             std::string_view::npos;
}

bool is_tag(std::string_view text) {
  constexpr size_t kTagBytesMax = 128;  // as registries
  return text.size() <= kTagBytesMax &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string_view::npos;
}

bool is_digest(std::string_view text) {
  constexpr std::string_view kSha256 = "sha256:";
  return text.size() == kSha256.size() + 64 && text.starts_with(kSha256) &&
         text.substr(kSha256.size()).find_first_not_of("0123456789abcdef") ==
             std::string_view::npos;
}

std::optional<Image> in_registry(std::string_view name) {
  if (name.starts_with(kDocker)) name.remove_prefix(kDocker.size());
  const ImageName parts = split_image_name(name);
  if (parts.registry.empty() || !is_repository(parts.repository) || !is_tag(parts.tag) ||
      (!parts.digest.empty() && !is_digest(parts.digest)) ||
      parts.registry.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") !=
          std::string::npos)
    return {};
  Image image;
  image.kind = Image::Kind::registry;
  image.source = registry_source(parts);
  return image;
}

}  // namespace

Json to_json(const Image& image) { return kImage.write(image); }
Result<Image> image_from_json(const Json& json) { return kImage.read(json); }

std::string transport_of(const Image& image) {
  if (image.kind == Image::Kind::registry) return std::string(kDocker) + image.source;
  return std::string(kImageKinds.text(image.kind)) + ":" + image.source;
}

bool ImageName::of_aws() const {
  return matches_pattern("*.dkr.ecr.*.amazonaws.com", registry) ||
         matches_pattern("*.dkr.ecr.*.amazonaws.com.cn", registry) ||
         matches_pattern("*.dkr.ecr-fips.*.amazonaws.com", registry);
}

ImageName split_image_name(std::string_view name) {
  ImageName out;
  if (const size_t slash = name.find('/'); slash != std::string_view::npos) {
    const std::string_view first = name.substr(0, slash);
    if (first.find_first_of(".:") != std::string_view::npos || first == "localhost") {
      out.registry = first;
      name.remove_prefix(slash + 1);
    }
  }
  if (const size_t at = name.find('@'); at != std::string_view::npos) {
    out.digest = name.substr(at + 1);
    name = name.substr(0, at);
  }
  if (const size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    out.tag = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  out.repository = name;
  return out;
}

const std::string* find_image_key(const std::map<std::string, Image>& images,
                                  std::string_view name) {
  name = current_image_name(name);
  const ImageName parts = split_image_name(name);
  const auto rank = [&](const std::string& key, const Image& image) {
    const auto stars = static_cast<size_t>(std::count(key.begin(), key.end(), '*'));
    return std::tuple(!image.built_in, key == name, key.size() - stars);
  };
  const std::pair<const std::string, Image>* best = nullptr;
  for (const auto& each : images)
    if (key_matches(each.first, name, parts) &&
        (!best || rank(each.first, each.second) > rank(best->first, best->second)))
      best = &each;
  return best ? &best->first : nullptr;
}

Result<Image> resolve_image(const std::map<std::string, Image>& images, const std::string& name) {
  if (const std::string* key = find_image_key(images, name)) return images.at(*key);
  for (const Image::Kind kind : {Image::Kind::oci, Image::Kind::containers_storage}) {
    const std::string prefix = std::string(kImageKinds.text(kind)) + ":";
    if (!name.starts_with(prefix)) continue;
    if (name.size() == prefix.size()) break;
    Image image;
    image.kind = kind;
    image.source = name.substr(prefix.size());
    return image;
  }
  if (auto image = in_registry(name)) return *std::move(image);
  std::string known;
  size_t shown = 0;
  for (const auto& [each, image] : images) {
    if (image.built_in && each.find('*') != std::string::npos) continue;
    if (++shown > kKnownShownMax) break;
    known += (known.empty() ? "" : ", ") + each;
  }
  if (shown > kKnownShownMax) known += ", ..";
  return invalid(
      "image '" + shorten(name, 200) + "' is neither a name of the config's images (" +
      (known.empty() ? "there are none" : known) +
      "), nor oci:PATH:TAG, nor containers-storage:NAME, nor HOST/NAME:TAG of a registry");
}

Json to_json(const EgressSettings& settings) { return kEgressSettings.write(settings); }
Result<EgressSettings> egress_settings_from_json(const Json& json) {
  return kEgressSettings.read(json);
}

}  // namespace trainyard::domain
