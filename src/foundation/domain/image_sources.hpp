// Selects the login with which a job's image is pulled from its registry, and lists the directories
// of OCI layouts. Agents read this part of the configuration from a file. The file contains
// secrets, so only the server's user may read it.
//
// Threads: pure. Errors: denied, if the principal may use no login of the registry; corrupt, for an
// invalid file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "domain/image.hpp"

namespace trainyard::domain {

// A login of a registry. Its lists contain the users ('*': any text) and roles (role.hpp) that may
// use it; if both are empty, all jobs may.
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

// Finds the first login of the image's registry that the job may use. Returns nullptr if the
// configuration has no login of the registry, or the image is not from a registry.
Result<const RegistryLogin*> find_login(const ImageSources& sources, const Image& image,
                                        std::string_view user, std::string_view role_arn);

}  // namespace trainyard::domain
