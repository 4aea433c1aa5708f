// Writes the reasons, notifications and history items of alarms with CloudWatch's texts.
//
// Threads: stateless.
#pragma once

#include "alarms/transition.hpp"

namespace trainyard::api::cloudwatch {

class CloudwatchTexts final : public alarms::AlarmTexts {
 public:
  alarms::Texts reason(const alarms::Alarm& alarm, const alarms::Evaluation& evaluation,
                       const alarms::Range& range, Instant now) const override;
  alarms::Texts composite_reason(const alarms::Alarm& alarm, alarms::State next,
                                 const alarms::Alarm* changed, Instant now) const override;
  // Returns the JSON that CloudWatch publishes to a topic.
  std::string message(const alarms::Alarm& after, const alarms::AlarmState& before,
                      const std::string& target) const override;
  // Returns {"resources", "detail"} of an event of EventBridge.
  std::string event(const alarms::Alarm& after, const alarms::AlarmState& before) const override;
  alarms::Texts state_item(const alarms::Alarm& after,
                           const alarms::AlarmState& before) const override;
  alarms::Texts action_item(const alarms::PendingAction& action,
                            const std::string& error) const override;
};

// The reason for the state of a new alarm.
inline constexpr const char* kInitialReason = "Unchecked: Initial alarm creation";

}  // namespace trainyard::api::cloudwatch
