// Converts a container's properties to the program, the resources and the container options of a
// job's host. Rejects properties that this server's machines cannot provide.
//
// Threads: pure functions. Errors: ClientException, naming the member.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "domain/job.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "shapes/batch.hpp"

namespace trainyard::api::batch_api {

// Makes the failure for an unsupported property: "X cannot be run by this server: do Y instead".
Failure cannot_run(const std::string& what, const std::string& instead);

// Converts the container of ecsProperties to containerProperties. Errors: not exactly one
// container.
Outcome<shapes::batch::ContainerProperties> container_of_task(
    const shapes::batch::EcsProperties& properties);
// Converts the overrides of such a container to containerOverrides.
Outcome<shapes::batch::ContainerOverrides> overrides_of_task(
    const shapes::batch::EcsPropertiesOverride& properties);
// Writes the container back to `properties`, for descriptions.
void put_container(shapes::batch::EcsProperties& properties,
                   const shapes::batch::ContainerProperties& container);

// Checks the required properties of a definition. `place`: the member that error messages name
// first, "containerProperties".
Outcome<Done> check_container(const shapes::batch::ContainerProperties& container,
                              const std::string& place);

// Apply the request's overrides and its parameters to the definition's container. Errors:
// ClientException, if vcpus or memory would override a resource requirement of the definition.
Outcome<Done> override_container(shapes::batch::ContainerProperties& container,
                                 const shapes::batch::ContainerOverrides& overrides);
void put_parameters(shapes::batch::ContainerProperties& container,
                    const std::map<std::string, std::string>& parameters);

// Makes a group of one host with the container. `settings`: has the volumes and devices of
// machines, and limits.
Outcome<domain::InstanceGroup> group_of(const shapes::batch::ContainerProperties& container,
                                        const Settings& settings, const std::string& region);
// Returns the size of the container's disk.
Outcome<int64_t> volume_gib_of(const shapes::batch::ContainerProperties& container);

// Converts the container to JSON in the form of AWS's model.
Outcome<Json> json_of(const shapes::batch::ContainerProperties& container);

}  // namespace trainyard::api::batch_api
