#include "contract/container_init.hpp"

#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::contract {
namespace {

constexpr auto kRun = complete(json_record<RunChild>(
    "run",
    [](auto& side, auto& run) {
      side("arguments", run.arguments);
      side("environment", run.environment);
      side("working_directory", run.working_directory);
    },
    [](const RunChild& run) -> Result<void> {
      if (run.arguments.empty()) return corrupt("run.arguments must not be empty");
      return {};
    }));

constexpr auto kSignal = complete(json_record<SignalChild>(
    "signal",
    [](auto& side, auto& signal) {
      side("signal", signal.number);
      side("all", signal.all);
    },
    [](const SignalChild& signal) -> Result<void> {
      if (signal.number < 1 || signal.number > kSignalMax)
        return corrupt("unknown signal " + std::to_string(signal.number));
      return {};
    }));

constexpr auto kEnded = complete(json_record<Ended>(
    "report", [](auto& side, auto& ended) { side("ended", ended.code); },
    [](const Ended& ended) -> Result<void> {
      if (ended.code < 0 || ended.code > 255)
        return corrupt("exit code " + std::to_string(ended.code) + " is not within 0 to 255");
      return {};
    }));

constexpr std::string_view kWrongOrder = "invalid order to a container init",
                           kWrongReport = "invalid report of a container init";

}  // namespace

std::string encode(const InitOrder& order) {
  if (const auto* run = std::get_if<RunChild>(&order)) return dump(Json{{"run", kRun.write(*run)}});
  if (const auto* signal = std::get_if<SignalChild>(&order)) return dump(kSignal.write(*signal));
  return dump(Json{{"clear", true}});
}

std::string encode(const InitReport& answer) {
  if (const auto* refused = std::get_if<NotStarted>(&answer))
    return dump(Json{{"not_started", to_utf8(refused->reason.substr(0, kInitReasonBytesMax))}});
  if (const auto* ended = std::get_if<Ended>(&answer)) return dump(kEnded.write(*ended));
  return dump(Json{{std::holds_alternative<Started>(answer) ? "started" : "cleared", true}});
}

Result<InitOrder> decode_init_order(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes).in(kWrongOrder));
  if (json.contains("clear")) return InitOrder(Clear{});
  if (json.contains("run")) return InitOrder(TRY(kRun.read(json["run"]).in(kWrongOrder)));
  if (json.contains("signal")) return InitOrder(TRY(kSignal.read(json).in(kWrongOrder)));
  return corrupt(std::string(kWrongOrder) + ": unknown kind");
}

Result<InitReport> decode_init_report(std::string_view bytes) {
  const Json json = TRY(parse_json(bytes).in(kWrongReport));
  if (json.contains("started")) return InitReport(Started{});
  if (json.contains("cleared")) return InitReport(Cleared{});
  if (json.contains("not_started")) {
    const std::string reason = TRY(string_at(json, "not_started").in(kWrongReport));
    return InitReport(NotStarted{to_utf8(reason.substr(0, kInitReasonBytesMax))});
  }
  return InitReport(TRY(kEnded.read(json).in(kWrongReport)));
}

}  // namespace trainyard::contract
