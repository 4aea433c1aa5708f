// Carries out the actions of alarms, by the ARN of the action.
//
//   arn:aws:sagemaker:REGION:ACCOUNT:training-job/NAME   stops the training job, as StopTrainingJob
//   arn:..:sns:..                                        is given to `topics`
//
// An ARN of another form, or of another account, fails at once.
//
// Threads: the sink is called from several threads. Errors: of the sink: invalid, not_found, and
// those of control and of `topics`. Lifetime: control outlives the sink and its answers.
#pragma once

#include <string>

#include "alarms/loop.hpp"
#include "control/control.hpp"

namespace trainyard::apps {

// `topics`: unset: there are no topics, and such an action fails.
alarms::Sink make_alarm_sink(control::Control& control, std::string account,
                             alarms::Sink topics = nullptr);

}  // namespace trainyard::apps
