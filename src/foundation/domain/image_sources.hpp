// Decides with which login a job's image is fetched from its registry, and where OCI layouts may lie: the part of the
// configuration that agents need. It holds secrets, so it is a file that only the server's user reads.
//
// Threads: pure. Errors: denied, for a principal that no login of the registry is for; corrupt, of a file that is not one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "domain/image.hpp"

namespace trainyard::domain {

// A login of a registry. Its lists name users, and roles by name or ARN, with '*' for any text; both empty: everyone.
struct RegistryLogin {
  std::string host;  // "registry.lan:5000"
  std::string username, password;
  std::vector<std::string> users, roles;
};

struct ImageSources {
  std::vector<RegistryLogin> logins;
  std::vector<std::string> oci_directories;  // empty: anywhere
};

Json to_json(const ImageSources& sources);
Result<ImageSources> image_sources_from_json(const Json& json);

// The first login of the image's registry that the job may use; nullptr when the configuration has none for the registry,
// or the image comes from elsewhere.
Result<const RegistryLogin*> find_login(const ImageSources& sources, const Image& image,
                                        std::string_view user, std::string_view role_arn);

}  // namespace trainyard::domain
