// Shows explanations of control as the members of responses, and looks up what their caller may
// see.
//
// Threads: callable from anywhere. Lifetime: the services and the authorizer outlive the rights.
#pragma once

#include "auth/authorizer.hpp"
#include "operations/services.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api::trainyard_api {

shapes::trainyard::StartChange start_change_of(const reconcile::ExplanationAnswer& answer);

// True if the caller may describe that job.
bool may_describe(const Authorizer& authorizer, Context context, const domain::JobKey& job);

// Jobs that the caller may describe, and queues that it may submit to. Lifetime: the context
// outlives the result.
reconcile::ExplainRights explain_rights(const Services& services, const Authorizer& authorizer,
                                        const Context& context);

}  // namespace trainyard::api::trainyard_api
