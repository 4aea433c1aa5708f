#include "alarms/transition.hpp"

#include <utility>

namespace trainyard::alarms {

Change transition(const Alarm& before, AlarmState next, const AlarmTexts& texts) {
  const bool changes = next.value != before.state.value;
  next.transitioned = changes ? next.updated : before.state.transitioned;
  Alarm after = before;
  after.state = std::move(next);
  Change change;
  if (changes) {
    const Texts item = texts.state_item(after, before.state);
    change.history.push_back({after.key, after.settings.kind, after.state.updated,
                              HistoryKind::state, item.text, item.data});
  }
  const auto start = [&](const std::string& target, std::string message) {
    change.actions.push_back({.alarm = after.key,
                              .alarm_kind = after.settings.kind,
                              .target = target,
                              .message = std::move(message),
                              .created = after.state.updated,
                              .due = after.state.updated});
  };
  if (changes) start(kEventBus, texts.event(after, before.state));
  if (changes && after.settings.actions_enabled)
    for (const std::string& target : after.settings.actions.of(after.state.value))
      start(target, texts.message(after, before.state, target));
  change.stored.push_back(std::move(after));
  return change;
}

}  // namespace trainyard::alarms
