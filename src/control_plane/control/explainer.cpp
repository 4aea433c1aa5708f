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
  return admit_and_compute([&](const Read& last) {
    return reconcile::explain(last.snapshot, {.scale_gangs = settings_.scale_gangs},
                              timeout_of(settings_), settings_.spot, last.now, job, rights);
  });
}

Result<reconcile::Explanation> Explainer::preview(CreateJob create,
                                                  const reconcile::ExplainRights& rights,
                                                  bool with_changes) {
  return admit_and_compute([&](const Read& last) {
    return reconcile::preview(last.snapshot, {.scale_gangs = settings_.scale_gangs},
                              timeout_of(settings_), settings_.spot, last.now, std::move(create),
                              rights, with_changes);
  });
}

Result<reconcile::Explanation> Explainer::admit_and_compute(const Compute& compute) {
  {
    const MutexLock lock(mutex_);
    if (waiting_ >= kExplanationsWaitingMax)
      return exhausted(std::to_string(kExplanationsWaitingMax) +
                       " other explanations are being computed: try again");
    ++waiting_;
  }
  auto found = compute_alone(compute);
  const MutexLock lock(mutex_);
  --waiting_;
  return found;
}

Result<reconcile::Explanation> Explainer::compute_alone(const Compute& compute) {
  const MutexLock exclusive(alone_);
  const auto last = this->last();
  if (!last) return unavailable("the server is starting: try again");
  try {
    return compute(*last);
  } catch (const std::exception& fault) {  // the data of a job is invalid
    return internal(std::string("explaining the job failed: ") + fault.what());
  }
}

}  // namespace trainyard::control
