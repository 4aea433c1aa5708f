// Waits for the server's confirmation that this attempt is the current one: two attempts of a job
// never run at once.
#include "agent/steps.hpp"

namespace trainyard::agent {

std::optional<Failure> await_welcome(StepContext& context) {
  if (auto heard = context.greeting.wait(context.interruption); !heard)
    return failure_of(heard.error(), "waiting for the server");
  return {};
}

}  // namespace trainyard::agent
