#include "operations/context.hpp"

#include "domain/job.hpp"

namespace trainyard::api {

std::function<bool(const domain::Job&)> Context::may_see_job() const {
  return [this](const domain::Job& job) { return may_see(job.key); };
}

}  // namespace trainyard::api
