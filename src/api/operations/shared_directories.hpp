// Checks that a principal may use the shared directories that a job names, by the lists `users` and
// `roles` of [file_systems] and [volumes] in the configuration.
//
// Threads: pure functions.
#pragma once

#include "domain/file_system.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"

namespace trainyard::api {

// `spec`: the new job's, with its role. Errors: denied, naming user and directory.
inline Result<void> check_shared_directories(const Settings& settings, const Principal& principal,
                                             const domain::JobSpec& spec) {
  const domain::Requester requester{
      principal.kind == PrincipalKind::session ? std::string() : principal.name,
      {principal.role_arn, spec.role_arn}};
  return domain::check_shared_directories(settings.file_systems, settings.volumes, spec, requester);
}

// Returns the file systems that channels of a region's jobs may name: those of the config, and
// those that requests have created.
domain::FileSystems known_file_systems(const Settings& settings, const Services& services,
                                       const std::string& region);

}  // namespace trainyard::api
