#include "operations/shared_directories.hpp"

#include "file_systems/file_systems.hpp"

namespace trainyard::api {

domain::FileSystems known_file_systems(const Settings& settings, const Services& services,
                                       const std::string& region) {
  domain::FileSystems all = settings.file_systems;
  if (services.file_systems) all.merge(services.file_systems->of_region(region));
  return all;
}

}  // namespace trainyard::api
