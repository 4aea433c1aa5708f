// Waits until the server has confirmed that this attempt is the current one, so that two attempts
// of a job never run at once.
#include "agent/steps.hpp"

namespace trainyard::agent {

std::optional<Failure> await_welcome(StepContext& context) {
  if (auto welcomed = context.welcome.wait(context.interruption); !welcomed)
    return failure_of(welcomed.error(), "waiting for the server");
  return {};
}

}  // namespace trainyard::agent
