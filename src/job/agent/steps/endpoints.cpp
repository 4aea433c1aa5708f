// Opens the job's endpoints for the API, the object store and the job's keys, and writes
// endpoints.json, from which old clients read the addresses of the API and the store.
#include "agent/endpoints.hpp"

#include "agent/steps.hpp"
#include "contract/clients.hpp"
#include "os/files.hpp"

namespace trainyard::agent {

std::optional<Failure> open_job_endpoints(StepContext& context) {
  auto opened = context.world.open_endpoints();
  if (!opened) return Failure{domain::Fault::internal, opened.error().message};
  context.endpoints = std::move(*opened);
  const auto& config = context.endpoints->config();
  auto written = os::write_file(context.path(kEndpointsFile),
                                contract::endpoints_json(config.api_url, config.objects_url));
  if (!written) return failure_of(written.error(), "writing the job's endpoints.json");
  return {};
}

void close_job_endpoints(StepContext& context) { context.endpoints.reset(); }

}  // namespace trainyard::agent
