// Resolves the name of a training image by the table `images` of the configuration.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::domain {

struct Image {
  enum class Kind {
    machine,             // a runtime: this machine's own system by allow-list
    oci,                 // an OCI layout: source is "PATH:TAG"
    containers_storage,  // podman's and buildah's storage: source is the image's name
    registry,            // source is "HOST[:PORT]/NAME:TAG" or "HOST[:PORT]/NAME@sha256:DIGEST"
  };
  Kind kind = Kind::machine;
  std::string source;
  // For runtimes: what else is bound in, read-only, inside path -> path on the machine; what runs when the
  // request names no entrypoint; variables it needs.
  std::map<std::string, std::string> mounts;
  std::vector<std::string> entrypoint;
  std::map<std::string, std::string> environment;
  std::string note;       // what a user should know who did not choose this; shown with the job's status
  bool built_in = false;  // not of the config: whatever the config says comes first
};

Json to_json(const Image&);
Result<Image> image_from_json(const Json&);

// The source as skopeo names it: "oci:PATH:TAG", "docker://HOST/NAME:TAG".
std::string transport_of(const Image&);

// The parts of an image's name: [REGISTRY/]REPOSITORY[:TAG][@DIGEST]. The first part is a registry's when it has a dot
// or a port, or is "localhost".
struct ImageName {
  std::string registry, repository, tag, digest;
  bool of_aws() const;  // ACCOUNT.dkr.ecr.REGION.amazonaws.com
};
ImageName split_image_name(std::string_view name);

// The key of `images` that is about `name`; nullptr when none is. A key is a name, in which '*' stands for any text. One
// without a tag is about all tags, one without a registry about all of AWS's registries: "pytorch-training",
// "pytorch-training:2.*-cpu-*", "*.dkr.ecr.eu-*.amazonaws.com/mine". Of several the most specific wins: the name
// itself, then the one with more text outside its stars. Keys of the config come before built-in ones.
const std::string* find_image_key(const std::map<std::string, Image>& images, std::string_view name);

// What `name` stands for: what a key of `images` is about, else "oci:PATH:TAG", "containers-storage:NAME",
// "docker://HOST/NAME:TAG" or the same without "docker://". Errors: invalid, with what would be understood.
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
