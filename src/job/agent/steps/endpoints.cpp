// Opens the job's endpoints for the API, the object store and its keys.
#include "agent/endpoints.hpp"

#include "agent/steps.hpp"

namespace trainyard::agent {

std::optional<Failure> open_job_endpoints(StepContext& context) {
  auto opened = context.world.open_endpoints();
  if (!opened) return Failure{domain::Fault::internal, opened.error().message};
  context.endpoints = std::move(*opened);
  return {};
}

void close_job_endpoints(StepContext& context) { context.endpoints.reset(); }

}  // namespace trainyard::agent
