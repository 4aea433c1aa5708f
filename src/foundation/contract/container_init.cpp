#include "contract/container_init.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::contract {

std::string encode(const InitOrder& order) {
  if (const auto* run = std::get_if<RunChild>(&order))
    return dump(Json{{"run",
                      {{"arguments", run->arguments},
                       {"environment", run->environment},
                       {"working_directory", run->working_directory}}}});
  if (const auto* signal = std::get_if<SignalChild>(&order))
    return dump(Json{{"signal", signal->number}, {"all", signal->all}});
  return dump(Json{{"clear", true}});
}

std::string encode(const InitReport& answer) {
  if (const auto* refused = std::get_if<NotStarted>(&answer))
    return dump(Json{{"not_started", to_utf8(refused->reason.substr(0, kInitReasonBytesMax))}});
  if (const auto* ended = std::get_if<Ended>(&answer)) return dump(Json{{"ended", ended->code}});
  return dump(Json{{std::holds_alternative<Started>(answer) ? "started" : "cleared", true}});
}

Result<InitOrder> decode_init_order(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes));
  if (!json.is_object()) return corrupt("invalid order to a container init: it must be an object");
  if (json.contains("clear")) return InitOrder(Clear{});
  if (json.contains("signal")) {
    SignalChild signal;
    const int64_t number = TRY(int_at(json, "signal"));
    if (number < 1 || number > kSignalMax)
      return corrupt("invalid order to a container init: unknown signal " + std::to_string(number));
    signal.number = int(number);
    signal.all = TRY(bool_at(json, "all"));
    return InitOrder(signal);
  }
  const auto found = json.find("run");
  if (found == json.end() || !found->is_object())
    return corrupt("invalid order to a container init: unknown kind");
  RunChild run;
  run.working_directory = TRY(string_at(*found, "working_directory"));
  const auto arguments = found->find("arguments"), environment = found->find("environment");
  if (arguments == found->end() || !arguments->is_array() || arguments->empty() ||
      environment == found->end() || !environment->is_object())
    return corrupt("invalid order to a container init: arguments or environment are missing");
  for (const Json& word : *arguments) {
    if (!word.is_string())
      return corrupt("invalid order to a container init: an argument must be a string");
    run.arguments.push_back(word.get<std::string>());
  }
  for (const auto& [name, value] : environment->items()) {
    if (!value.is_string())
      return corrupt("invalid order to a container init: a variable must be a string");
    run.environment[name] = value.get<std::string>();
  }
  return InitOrder(std::move(run));
}

Result<InitReport> decode_init_report(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes));
  if (!json.is_object()) return corrupt("invalid report of a container init: it must be an object");
  if (json.contains("started")) return InitReport(Started{});
  if (json.contains("cleared")) return InitReport(Cleared{});
  if (json.contains("not_started")) {
    const std::string reason = TRY(string_at(json, "not_started"));
    return InitReport(NotStarted{to_utf8(reason.substr(0, kInitReasonBytesMax))});
  }
  const int64_t code = TRY(int_at(json, "ended"));
  if (code < 0 || code > 255)
    return corrupt("invalid report of a container init: exit code " + std::to_string(code) +
                   " is not within 0 to 255");
  return InitReport(Ended{int(code)});
}

}  // namespace trainyard::contract
