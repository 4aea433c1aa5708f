// Carries out the actions of alarms, by the ARN of the action.
//
//   arn:aws:sagemaker:REGION:ACCOUNT:training-job/NAME   stops the training job, as StopTrainingJob
//   arn:..:sns:.., and the event of a change             passed to `notifications`
//
// Actions with another ARN, or for a job of another account, fail with invalid.
//
// Threads: the sink is called from several threads. Errors of the sink: invalid; not_found;
// unavailable, if a stop takes too long; those of control and of `notifications`. Lifetime: control
// outlives the sink and its results.
#pragma once

#include <string>

#include "alarms/loop.hpp"
#include "control/control.hpp"

namespace trainyard::apps {

// `notifications` may be empty; then actions for topics fail, and events are dropped.
alarms::Sink make_alarm_sink(control::Control& control, std::string account,
                             alarms::Sink notifications = nullptr);

}  // namespace trainyard::apps
