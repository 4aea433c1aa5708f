// What a TrainingImage name stands for, after the config's `images` table was asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::domain {

struct Image {
  enum class Kind {
    machine,             // a runtime: this machine's own system by allow-list
    oci,                 // an OCI layout: source is "PATH:TAG"
    containers_storage,  // podman's and buildah's storage: source is the image's name
  };
  Kind kind = Kind::machine;
  std::string source;
  // For runtimes: what else is bound in, read-only, inside path -> path on the machine; what runs when the
  // request names no entrypoint; variables it needs.
  std::map<std::string, std::string> mounts;
  std::vector<std::string> entrypoint;
  std::map<std::string, std::string> environment;
};

Json to_json(const Image&);
Result<Image> image_from_json(const Json&);

// What `name` stands for: a key of `images`, else "oci:PATH:TAG" or "containers-storage:NAME". Errors:
// invalid, with what would be understood.
Result<Image> resolve_image(const std::map<std::string, Image>& images, const std::string& name);

// How a job reaches the outside, from the config. Empty members say nothing.
struct Outward {
  std::vector<std::string> name_servers;
  std::string http_proxy, https_proxy, no_proxy;
  std::string ca_bundle;      // a file of the machine, bound into the host and named to its clients
  std::string package_index;  // URL for pip
};

Json to_json(const Outward&);
Result<Outward> outward_from_json(const Json&);

}  // namespace trainyard::domain
