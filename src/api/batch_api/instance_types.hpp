// Checks the instance types of a compute environment: types ("c5.4xlarge"), families ("c5"), and
// AWS's bundles ("optimal").
//
// Threads: pure function.
#pragma once

#include "base/json.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api::batch_api {

// `resources`: the computeResources of a request. Errors: ClientException, for the first type that
// AWS does not have, suggesting the nearest name.
Outcome<Done> check_instance_types(const Json& resources);

}  // namespace trainyard::api::batch_api
