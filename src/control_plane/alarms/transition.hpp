// transition() makes the change of the store for a new state of an alarm: the state, its history,
// and the actions that it starts.
//
// Threads: pure functions; an AlarmTexts is called from any thread.
#pragma once

#include <string>

#include "alarms/evaluation.hpp"
#include "alarms/store.hpp"

namespace trainyard::alarms {

struct Texts {
  std::string text;
  std::string data;  // JSON
};

// AlarmTexts writes the texts about alarms that users and programs read, in the form of an API.
class AlarmTexts {
 public:
  virtual ~AlarmTexts() = default;
  // The reason of a metric alarm's state.
  virtual Texts reason(const Alarm& alarm, const Evaluation& evaluation, const Range& range,
                       Instant now) const = 0;
  // The reason of a composite alarm's state. `changed`: the alarm of its rule whose state changed
  // last; may be nullptr.
  virtual Texts composite_reason(const Alarm& alarm, State next, const Alarm* changed,
                                 Instant now) const = 0;
  // The message of an action. `after` has the new state.
  virtual std::string message(const Alarm& after, const AlarmState& before,
                              const std::string& target) const = 0;
  // The event of a change of the state.
  virtual std::string event(const Alarm& after, const AlarmState& before) const = 0;
  // The summary and the data of history items.
  virtual Texts state_item(const Alarm& after, const AlarmState& before) const = 0;
  // `error`: "" if the action was carried out.
  virtual Texts action_item(const PendingAction& action, const std::string& error) const = 0;
};

// Sets next.transitioned. If the value of the state changes, the change has an event, and the
// alarm's actions if they are enabled.
Change transition(const Alarm& before, AlarmState next, const AlarmTexts& texts);

}  // namespace trainyard::alarms
