// Adds the empty lists that descriptions of containers have on AWS. Clients that compare a
// definition with its description (Terraform, the console) expect them.
//
// Threads: pure functions.
#pragma once

#include "shapes/batch.hpp"

namespace trainyard::api::batch_api {

// `Container`: ContainerProperties or ContainerDetail.
template <class Container>
void add_empty_lists(Container& container) {
  const auto add = [](auto& list) {
    if (!list) list.emplace();
  };
  add(container.command);
  add(container.environment);
  add(container.mount_points);
  add(container.resource_requirements);
  add(container.secrets);
  add(container.ulimits);
  add(container.volumes);
}

}  // namespace trainyard::api::batch_api
