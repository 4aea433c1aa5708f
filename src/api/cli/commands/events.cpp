// `trainyard events`.
#include "cli/commands.hpp"
#include "cli/views/event_view.hpp"

namespace trainyard::cli {
namespace {

constexpr Duration kEventsInterval = 1s;

Result<void> print_events(World& world, const Json& answer, bool json) {
  const auto events = answer.find("Events");
  if (events == answer.end() || !events->is_array()) return {};
  std::string text;
  for (const Json& each : *events) {
    const Json event = TRY(parse_json(each.is_string() ? each.get<std::string>() : "{}"));
    text += json ? dump(event) + "\n" : event_line(world.looks, event);
  }
  return text.empty() ? ok() : world.terminal.write(text);
}

}  // namespace

Result<int> events_command(World& world, const Arguments& arguments) {
  const bool follow = arguments.has("--follow");
  if (follow) world.terminal.watch_interrupts();
  Json question = Json::object();
  if (const auto pattern = arguments.value("--pattern"); !pattern.empty())
    question["EventPattern"] = pattern;
  if (!follow) question["Position"] = "0";
  for (;;) {
    const Json answer = TRY(world.client.call(client::Service::trainyard, "ListEvents", question));
    if (follow && answer.value("EventsMissed", false))
      world.terminal.write_error("trainyard: some events were missed\n");
    TRY(print_events(world, answer, arguments.has("--json")));
    const std::string position = answer.value("Position", "");
    const bool more = question.contains("Position") && question["Position"] != position;
    question["Position"] = position;
    if (more) continue;  // until an answer brings nothing new
    if (!follow) return 0;
    if (world.terminal.wait(kEventsInterval, false, -1).interrupted) return kExitInterrupted;
  }
}

}  // namespace trainyard::cli
