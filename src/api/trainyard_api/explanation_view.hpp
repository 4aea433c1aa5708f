// Converts control's explanations to members of responses, and determines what the caller may see.
//
// Threads: callable from anywhere. Lifetime: the services and the authorizer outlive the rights.
#pragma once

#include "auth/authorizer.hpp"
#include "operations/services.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api::trainyard_api {

shapes::trainyard::StartChange start_change_of(const reconcile::ExplanationAnswer& answer);

// Returns which jobs the caller may describe, and to which queues it may submit. Lifetime: the
// context outlives the result.
reconcile::ExplainRights explain_rights(const Services& services, const Authorizer& authorizer,
                                        const Context& context);

}  // namespace trainyard::api::trainyard_api
