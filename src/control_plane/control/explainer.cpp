#include "control/explainer.hpp"

#include <exception>
#include <string>
#include <utility>

namespace trainyard::control {

reconcile::Timeout timeout_of(const Settings& settings) {
  return {.launch = settings.launch_timeout,
          .stop_grace = settings.stop_grace,
          .stop_upload = settings.stop_upload_timeout,
          .leave = settings.leave_timeout,
          .spot_notice = settings.spot_notice,
          .growth = settings.growth};
}

void Explainer::put(reconcile::Snapshot snapshot, Instant now) {
  auto next = std::make_shared<const Read>(Read{std::move(snapshot), now});
  const MutexLock lock(mutex_);
  last_.swap(next);
}

Result<reconcile::Explanation> Explainer::explain(domain::JobNumber job,
                                                  const reconcile::ExplainRights& rights) {
  {
    const MutexLock lock(mutex_);
    if (waiting_ >= kExplanationsWaitingMax)
      return exhausted("too many explanations are being computed: try again");
    ++waiting_;
  }
  auto found = explain_alone(job, rights);
  const MutexLock lock(mutex_);
  --waiting_;
  return found;
}

Result<reconcile::Explanation> Explainer::explain_alone(domain::JobNumber job,
                                                        const reconcile::ExplainRights& rights) {
  const MutexLock alone(alone_);
  std::shared_ptr<const Read> last;
  {
    const MutexLock lock(mutex_);
    last = last_;
  }
  if (!last) return unavailable("the server is starting: try again");
  try {
    return reconcile::explain(last->snapshot, {.scale_gangs = settings_.scale_gangs},
                              timeout_of(settings_), settings_.spot, last->now, job, rights);
  } catch (const std::exception& fault) {  // data of a job for which planning fails
    return internal(std::string("explaining the job failed: ") + fault.what());
  }
}

}  // namespace trainyard::control
