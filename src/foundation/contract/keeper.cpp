#include "contract/keeper.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::contract {

std::string encode(const KeeperOrder& order) {
  if (const auto* run = std::get_if<RunChild>(&order))
    return dump(Json{{"run",
                      {{"arguments", run->arguments},
                       {"environment", run->environment},
                       {"working_directory", run->working_directory}}}});
  if (const auto* signal = std::get_if<SignalChild>(&order))
    return dump(Json{{"signal", signal->number}, {"all", signal->all}});
  return dump(Json{{"clear", true}});
}

std::string encode(const KeeperAnswer& answer) {
  if (const auto* refused = std::get_if<NotStarted>(&answer))
    return dump(Json{{"not_started", to_utf8(refused->reason.substr(0, kKeeperReasonBytesMax))}});
  if (const auto* ended = std::get_if<Ended>(&answer)) return dump(Json{{"ended", ended->code}});
  return dump(Json{{std::holds_alternative<Started>(answer) ? "started" : "cleared", true}});
}

Result<KeeperOrder> decode_keeper_order(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes));
  if (!json.is_object()) return corrupt("an order to a keeper is an object");
  if (json.contains("clear")) return KeeperOrder(Clear{});
  if (json.contains("signal")) {
    SignalChild signal;
    const int64_t number = TRY(int_at(json, "signal"));
    if (number < 1 || number > kSignalMax)
      return corrupt("invalid signal " + std::to_string(number) + " in an order to a keeper");
    signal.number = int(number);
    signal.all = TRY(bool_at(json, "all"));
    return KeeperOrder(signal);
  }
  const auto found = json.find("run");
  if (found == json.end() || !found->is_object()) return corrupt("an order to a keeper that is none");
  RunChild run;
  run.working_directory = TRY(string_at(*found, "working_directory"));
  const auto arguments = found->find("arguments"), environment = found->find("environment");
  if (arguments == found->end() || !arguments->is_array() || arguments->empty() ||
      environment == found->end() || !environment->is_object())
    return corrupt("a child without arguments or environment");
  for (const Json& word : *arguments) {
    if (!word.is_string()) return corrupt("an argument that is no text");
    run.arguments.push_back(word.get<std::string>());
  }
  for (const auto& [name, value] : environment->items()) {
    if (!value.is_string()) return corrupt("a variable that is no text");
    run.environment[name] = value.get<std::string>();
  }
  return KeeperOrder(std::move(run));
}

Result<KeeperAnswer> decode_keeper_answer(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes));
  if (!json.is_object()) return corrupt("a keeper's answer is an object");
  if (json.contains("started")) return KeeperAnswer(Started{});
  if (json.contains("cleared")) return KeeperAnswer(Cleared{});
  if (json.contains("not_started")) {
    const std::string reason = TRY(string_at(json, "not_started"));
    return KeeperAnswer(NotStarted{to_utf8(reason.substr(0, kKeeperReasonBytesMax))});
  }
  const int64_t code = TRY(int_at(json, "ended"));
  if (code < 0 || code > 255) return corrupt("an exit code beyond 255");
  return KeeperAnswer(Ended{int(code)});
}

}  // namespace trainyard::contract
