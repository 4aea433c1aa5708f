// Converts a container's properties to what a host of a job runs: its program, its resources and its container options.
// Properties that machines of this server cannot provide are rejected.
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

// A request cannot be carried out by this server: "X cannot be run by this server: do Y instead".
Failure cannot_run(const std::string& what, const std::string& instead);

// The container of ecsProperties or of a task in it, in containerProperties' members. Errors: other than one container.
Outcome<shapes::batch::ContainerProperties> container_of_task(const shapes::batch::EcsProperties& properties);
// What a request changes of such a container.
Outcome<shapes::batch::ContainerOverrides> overrides_of_task(
    const shapes::batch::EcsPropertiesOverride& properties);
// The same properties with the container's words: for descriptions.
void put_container(shapes::batch::EcsProperties& properties,
                   const shapes::batch::ContainerProperties& container);

// What must be in a definition. `place` begins its errors: "containerProperties".
Outcome<Done> check_container(const shapes::batch::ContainerProperties& container, const std::string& place);

// What the container is given, from the definition's words and those of the request.
void override_container(shapes::batch::ContainerProperties& container,
                        const shapes::batch::ContainerOverrides& overrides);
void put_parameters(shapes::batch::ContainerProperties& container,
                    const std::map<std::string, std::string>& parameters);

// A group of one host with that container. `settings`: what machines give to containers.
Outcome<domain::InstanceGroup> group_of(const shapes::batch::ContainerProperties& container,
                                        const Settings& settings, const std::string& region);
// The size of its disk.
Outcome<int64_t> volume_gib_of(const shapes::batch::ContainerProperties& container);

// As the model writes it.
Outcome<Json> words_of(const shapes::batch::ContainerProperties& container);

}  // namespace trainyard::api::batch_api
