// PlainTexts writes short texts about alarms, for tests.
//
// Threads: stateless.
#pragma once

#include <string>

#include "alarms/transition.hpp"

namespace trainyard::alarms {

class PlainTexts final : public AlarmTexts {
 public:
  Texts reason(const Alarm&, const Evaluation& evaluation, const Range&, Instant) const override {
    return {
        std::to_string(evaluation.breaching) + " of " + std::to_string(evaluation.compared.size()),
        "{}"};
  }
  Texts composite_reason(const Alarm&, State, const Alarm* changed, Instant) const override {
    return {changed ? changed->key.name : "", "{}"};
  }
  std::string message(const Alarm& after, const AlarmState&, const std::string&) const override {
    return after.key.name + " " + std::string(kStates.text(after.state.value));
  }
  std::string event(const Alarm& after, const AlarmState& before) const override {
    return after.key.name + " " + std::string(kStates.text(before.value)) + " -> " +
           std::string(kStates.text(after.state.value));
  }
  Texts state_item(const Alarm& after, const AlarmState&) const override {
    return {std::string(kStates.text(after.state.value)), "{}"};
  }
  Texts action_item(const PendingAction& action, const std::string& error) const override {
    return {action.target + (error.empty() ? "" : " failed: " + error), "{}"};
  }
};

}  // namespace trainyard::alarms
