#include "control/consumption.hpp"

namespace trainyard::control {

Consumed consumed_by(const std::vector<std::shared_ptr<const domain::Job>>& jobs) {
  Consumed consumed;
  for (const auto& job : jobs) {
    if (!job->spec.queue || !job->attempt() || job->attempt()->state == domain::AttemptState::ended)
      continue;
    for (const domain::Consumption& each : job->spec.queue->consumes)
      consumed[{job->key.region, each.resource}] += each.quantity;
  }
  return consumed;
}

}  // namespace trainyard::control
