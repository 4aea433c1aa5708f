#include "trainyard/images.hpp"

#include "host/files.hpp"

namespace trainyard::apps {
namespace {

constexpr std::string_view kLayout = "oci:";
constexpr std::string_view kStorage = "containers-storage:";
constexpr const char* kTrainersInside = "/opt/trainyard/bin";

}  // namespace

Result<domain::Image> parse_image_source(const std::string& source) {
  domain::Image image;
  if (source.starts_with(kLayout)) {
    image.kind = domain::Image::Kind::oci;
    image.source = source.substr(kLayout.size());
    const size_t colon = image.source.rfind(':');
    if (!image.source.starts_with("/") || colon == std::string::npos || colon + 1 == image.source.size())
      return invalid("'" + source + "' must read oci:PATH:TAG with an absolute path of an OCI layout");
    return image;
  }
  if (source.starts_with(kStorage)) {
    image.kind = domain::Image::Kind::containers_storage;
    image.source = source.substr(kStorage.size());
    if (image.source.empty()) return invalid("'" + source + "' must read containers-storage:NAME");
    return image;
  }
  return invalid("'" + source + "' is neither oci:PATH:TAG nor containers-storage:NAME");
}

Images::Images(std::map<std::string, domain::Image> configured, const std::string& program_directory)
    : images_(std::move(configured)) {
  images_.try_emplace("trainyard/machine");
  domain::Image trainer;
  trainer.mounts[std::string(kTrainersInside) + "/trainyard-trainer"] = program_directory + "/trainyard-trainer";
  trainer.entrypoint = {std::string(kTrainersInside) + "/trainyard-trainer"};
  if (host::exists(program_directory + "/trainyard-trainer")) images_.try_emplace("trainyard/trainer", trainer);
}

Result<domain::Image> Images::find(const std::string& name) const {
  if (const auto found = images_.find(name); found != images_.end()) return found->second;
  if (name.starts_with(kLayout) || name.starts_with(kStorage)) return parse_image_source(name);
  std::string names;
  for (const auto& [one, image] : images_) names += (names.empty() ? "" : ", ") + one;
  return invalid("there is no image '" + name + "' here. Images are: " + names +
                 "; or give oci:PATH:TAG or containers-storage:NAME; or name it in [images] of the config");
}

}  // namespace trainyard::apps
