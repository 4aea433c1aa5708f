#include "agent/image_failure.hpp"

#include "agent/steps.hpp"
#include "base/text.hpp"
#include "containers/image.hpp"

namespace trainyard::agent {
namespace {

using containers::ImageFault;
using ImageKind = domain::Image::Kind;

// The limit for the text of an error without a text here. The job's log has the complete text.
constexpr size_t kCauseBytesMax = 300;

domain::ImageName parts_of(const std::string& name) {
  constexpr std::string_view kDocker = "docker://";
  std::string_view text = name;
  if (text.starts_with(kDocker)) text.remove_prefix(kDocker.size());
  return domain::split_image_name(text);
}

bool is_of_aws(const domain::Image& image, const std::string& name) {
  return image.kind == ImageKind::registry && parts_of(name).of_aws();
}

std::string place_of(const domain::Image& image) {
  switch (image.kind) {
    case ImageKind::registry:
      return "the registry " + domain::split_image_name(image.source).registry;
    case ImageKind::oci:
      return "the OCI layout";
    case ImageKind::containers_storage:
      return "podman's storage";
    case ImageKind::machine:
      break;
  }
  return "this machine";
}

std::string cause_of(const domain::Image& image, const Error& error) {
  if (const auto fault = error.detail.as<ImageFault>()) switch (*fault) {
      case ImageFault::missing:
        return place_of(image) + " does not have it";
      case ImageFault::refused:
        return place_of(image) + " refuses to give it without a login that may read it";
      case ImageFault::unreachable:
        return place_of(image) + " cannot be reached from this machine";
      case ImageFault::tool_missing:
        return "skopeo, which pulls images, is not installed on this machine";
    }
  return shorten(error.message, kCauseBytesMax);
}

// Returns the entry of the server's configuration that replaces an image of AWS's.
std::string entry_for(const std::string& name) {
  return "[images.\"" + parts_of(name).repository +
         "\"] in the server's configuration replaces it, by this machine's own system (runtime = "
         "\"machine\") or by another image (image = \"HOST/NAME:TAG\")";
}

// Returns what the user can do; "" where the cause is sufficient.
std::string help_for(const domain::Image& image, const std::string& name, const Error& error) {
  const bool registry = image.kind == ImageKind::registry;
  const std::string pull = "`trainyard pull " + name + "`";
  const std::string entry = is_of_aws(image, name) ? entry_for(name) + "; or " : "";
  if (error.is(ImageFault::tool_missing)) return "`apt-get install skopeo` installs it";
  if (error.is(ImageFault::refused) && registry)
    return entry + "`skopeo login " + domain::split_image_name(image.source).registry +
           "` as the server's user, then " + pull;
  if (error.is(ImageFault::unreachable) && registry)
    return entry + pull + " while the registry can be reached keeps it for later jobs";
  if (error.is(ImageFault::missing)) {
    if (!entry.empty()) return entry_for(name);
    return registry ? "correct its name or tag; " + pull + " tries it without a job"
                    : "`skopeo copy docker://HOST/NAME:TAG " + domain::transport_of(image) +
                          "` puts it there";
  }
  return entry.empty() ? "" : entry_for(name);
}

}  // namespace

Failure image_failure(const domain::Image& image, const std::string& name, const Error& error) {
  const std::string help = help_for(image, name, error);
  Error short_error = error;
  short_error.message = cause_of(image, error) + (help.empty() ? "" : "; " + help);
  Failure failure = failure_of(short_error, "The image " + name + " cannot be used");
  if (is_of_aws(image, name) && error.is(ImageFault::unreachable))
    failure.fault = domain::Fault::client;
  return failure;
}

std::string replaced_image_hint(const domain::Image& image, const std::string& name) {
  if (image.kind != ImageKind::machine || image.note.empty()) return "";
  return ": " + name +
         " is an image of AWS's, and this machine's own system was used instead of it; name a "
         "program of this machine (ContainerEntrypoint) or a script (source_dir and entry_point), "
         "or give the image with [images.\"" +
         parts_of(name).repository + "\"] in the server's configuration";
}

}  // namespace trainyard::agent
