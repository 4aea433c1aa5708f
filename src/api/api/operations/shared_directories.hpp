// Who may name the shared directories of the config: the lists `users` and `roles` of [file_systems] and [volumes].
//
// Threads: pure functions.
#pragma once

#include "api/api.hpp"
#include "api/context.hpp"
#include "domain/file_system.hpp"

namespace trainyard::api {

// Errors: denied, naming user and directory. `spec`: of the job that is to be made, with its role.
inline Result<void> check_shared_directories(const Settings& settings, const Principal& principal,
                                             const domain::JobSpec& spec) {
  const domain::Requester requester{principal.kind == PrincipalKind::session ? std::string() : principal.name,
                                    {principal.role_arn, spec.role_arn}};
  return domain::check_shared_directories(settings.file_systems, settings.volumes, spec, requester);
}

}  // namespace trainyard::api
