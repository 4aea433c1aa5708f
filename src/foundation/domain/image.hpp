// Resolves the names of training images by the table `images` of the configuration.
//
// Threads: plain values, pure functions.
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
    machine,             // a runtime: the file system of the machine, limited by an allow-list
    oci,                 // an OCI layout: source is "PATH:TAG"
    containers_storage,  // the storage of podman and buildah: source is the image's name
    registry,            // source is "HOST[:PORT]/NAME:TAG" or "HOST[:PORT]/NAME@sha256:DIGEST"
  };
  Kind kind = Kind::machine;
  std::string source;
  // For runtimes: additional read-only mounts (path in the container -> path on the machine), the
  // entrypoint if the request has none, and variables that the runtime needs.
  std::map<std::string, std::string> mounts;
  std::vector<std::string> entrypoint;
  std::map<std::string, std::string> environment;
  std::string note;       // shown with the job's status, for users that did not choose this image
  bool built_in = false;  // not from the config; entries of the config take precedence
};

Json to_json(const Image&);
Result<Image> image_from_json(const Json&);

// Returns the source in the form of skopeo: "oci:PATH:TAG", "docker://HOST/NAME:TAG".
std::string transport_of(const Image&);

// The parts of an image's name: [REGISTRY/]REPOSITORY[:TAG][@DIGEST]. The part before the first
// slash is a registry if it has a dot or a port, or is "localhost".
struct ImageName {
  std::string registry, repository, tag, digest;
  bool of_aws() const;  // ACCOUNT.dkr.ecr.REGION.amazonaws.com
};
ImageName split_image_name(std::string_view name);

// Finds the key of `images` that matches `name`; nullptr if none matches. In a key '*' stands for
// any text. A key without a tag matches all tags; a key without a registry matches all of AWS's
// registries: "pytorch-training", "pytorch-training:2.*-cpu-*",
// "*.dkr.ecr.eu-*.amazonaws.com/mine". Keys of the config take precedence over built-in ones; then
// the exact name wins, then the key with the most text outside its stars.
const std::string* find_image_key(const std::map<std::string, Image>& images,
                                  std::string_view name);

// Resolves `name` by the matching key of `images` or, if none matches, as "oci:PATH:TAG",
// "containers-storage:NAME" or "docker://HOST/NAME:TAG" ("docker://" may be omitted). Errors:
// invalid, with the accepted forms.
Result<Image> resolve_image(const std::map<std::string, Image>& images, const std::string& name);

// The settings of the config with which jobs access the internet. Empty members are not set.
struct EgressSettings {
  std::vector<std::string> name_servers;
  std::string http_proxy, https_proxy, no_proxy;
  // a file on the machine, which is mounted in the container and configured for its clients
  std::string ca_bundle;
  std::string package_index;  // URL for pip
};

Json to_json(const EgressSettings&);
Result<EgressSettings> egress_settings_from_json(const Json&);

}  // namespace trainyard::domain
