// Converts alarms between CloudWatch's shapes and those of `alarms`, and checks requests with AWS's
// texts.
//
// Threads: pure functions.
#pragma once

#include "shapes/cloudwatch.hpp"

#include <vector>

#include "alarms/alarm.hpp"
#include "operations/context.hpp"
#include "protocol/errors.hpp"

namespace trainyard::api::cloudwatch {

Outcome<alarms::AlarmSettings> to_settings(const Context& context,
                                           const shapes::cloudwatch::PutMetricAlarmInput& in);
// Checks the request, except that the alarms of its rule exist.
Outcome<alarms::AlarmSettings> to_settings(const Context& context,
                                           const shapes::cloudwatch::PutCompositeAlarmInput& in);

shapes::cloudwatch::MetricAlarm to_metric_alarm(const alarms::Alarm& alarm);
shapes::cloudwatch::CompositeAlarm to_composite_alarm(const alarms::Alarm& alarm);

}  // namespace trainyard::api::cloudwatch
