// `trainyard events`: prints events of the event bus.
#include "cli/commands.hpp"
#include "cli/views/event_view.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kEventsInterval = 1s;

Result<void> print_events(CommandContext& context, const Json& answer, bool json) {
  const auto events = answer.find("Events");
  if (events == answer.end() || !events->is_array()) return {};
  std::string text;
  for (const Json& each : *events) {
    const Json event = TRY(parse_json(each.is_string() ? each.get<std::string>() : "{}"));
    text += json ? dump(event) + "\n" : event_line(context.style, event);
  }
  return text.empty() ? ok() : context.terminal.write(text);
}

}  // namespace

Result<int> events_command(CommandContext& context, const Arguments& arguments) {
  const bool follow = arguments.has("--follow");
  if (follow) context.terminal.watch_interrupts();
  Json question = Json::object();
  if (const auto pattern = arguments.value("--pattern"); !pattern.empty())
    question["EventPattern"] = pattern;
  if (!follow) question["Position"] = "0";
  for (;;) {
    const Json answer =
        TRY(context.client.call(client::Service::trainyard, "ListEvents", question));
    if (follow && answer.value("EventsMissed", false))
      context.terminal.write_error("trainyard: some events were missed\n");
    TRY(print_events(context, answer, arguments.has("--json")));
    const std::string position = answer.value("Position", "");
    const bool more = question.contains("Position") && question["Position"] != position;
    question["Position"] = position;
    if (more) continue;  // reads on until a response has no new events
    if (!follow) return 0;
    if (context.terminal.wait(kEventsInterval, false, -1).interrupted) return kExitInterrupted;
  }
}

}  // namespace trainyard::cli
