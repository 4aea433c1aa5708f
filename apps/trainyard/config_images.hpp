// Reads the tables of the configuration that are about images: [images], [image_policy] and [[registry]].
//
// Threads: as Table. Errors: invalid, with the key and what it should be; those of files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "domain/image.hpp"
#include "domain/image_policy.hpp"
#include "domain/image_sources.hpp"
#include "trainyard/config_table.hpp"

namespace trainyard::apps {

Result<void> read_image(const std::string& name, Table table, std::map<std::string, domain::Image>& images);
// Reads the rules for images that jobs may run and [images] does not have.
Result<void> read_image_policy(Table table, domain::ImagePolicy& policy);
// A login of a registry, and whose jobs may use it. `directory`: of the configuration file, with a slash.
Result<void> read_registry(Table table, const std::string& directory,
                           std::vector<domain::RegistryLogin>& logins);

}  // namespace trainyard::apps
