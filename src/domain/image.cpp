#include "domain/image.hpp"

#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::domain {
namespace {

std::string_view to_string(Image::Kind kind) {
  switch (kind) {
    case Image::Kind::machine:
      return "machine";
    case Image::Kind::oci:
      return "oci";
    case Image::Kind::containers_storage:
      return "containers-storage";
  }
  return "machine";
}

Result<Image::Kind> parse_image_kind(std::string_view text) {
  for (const Image::Kind kind : {Image::Kind::machine, Image::Kind::oci, Image::Kind::containers_storage})
    if (to_string(kind) == text) return kind;
  return invalid("'" + shorten(text, 60) + "' is not an image kind");
}

}  // namespace

Json to_json(const Image& image) {
  return {{"kind", to_string(image.kind)},
          {"source", image.source},
          {"mounts", image.mounts},
          {"entrypoint", image.entrypoint},
          {"environment", image.environment}};
}

Result<Image> image_from_json(const Json& json) {
  Image image;
  Fields fields(json, "image");
  fields.read("kind", image.kind, parse_image_kind)
      .read("source", image.source)
      .read("mounts", image.mounts)
      .read("entrypoint", image.entrypoint)
      .read("environment", image.environment);
  TRY(fields.result());
  return image;
}

Result<Image> resolve_image(const std::map<std::string, Image>& images, const std::string& name) {
  if (const auto found = images.find(name); found != images.end()) return found->second;
  for (const Image::Kind kind : {Image::Kind::oci, Image::Kind::containers_storage}) {
    const std::string prefix = std::string(to_string(kind)) + ":";
    if (!name.starts_with(prefix) || name.size() == prefix.size()) continue;
    Image image;
    image.kind = kind;
    image.source = name.substr(prefix.size());
    return image;
  }
  std::string known;
  for (const auto& [each, image] : images) known += (known.empty() ? "" : ", ") + each;
  return invalid("image '" + shorten(name, 200) + "' is neither a name of the config's images (" +
                 (known.empty() ? "there are none" : known) +
                 "), nor oci:PATH:TAG, nor containers-storage:NAME");
}

Json to_json(const Outward& outward) {
  return {{"name_servers", outward.name_servers}, {"http_proxy", outward.http_proxy},
          {"https_proxy", outward.https_proxy},   {"no_proxy", outward.no_proxy},
          {"ca_bundle", outward.ca_bundle},       {"package_index", outward.package_index}};
}

Result<Outward> outward_from_json(const Json& json) {
  Outward outward;
  Fields fields(json, "outward");
  fields.read("name_servers", outward.name_servers)
      .read("http_proxy", outward.http_proxy)
      .read("https_proxy", outward.https_proxy)
      .read("no_proxy", outward.no_proxy)
      .read("ca_bundle", outward.ca_bundle)
      .read("package_index", outward.package_index);
  TRY(fields.result());
  return outward;
}

}  // namespace trainyard::domain
