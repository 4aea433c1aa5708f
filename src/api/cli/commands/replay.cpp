// `trainyard replay`: replays the jobs of a past period with other machines, policies or limits.
#include <cmath>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/views/replay_view.hpp"

namespace trainyard::cli {
namespace {

constexpr int kReplayBarWidth = 30;

// Parses "24h" (before now), "2026-11-20" or "2026-11-20T09:45:00Z".
Result<Instant> parse_point(const std::string& option, const std::string& text, Instant now) {
  if (const auto ago = parse_duration(text)) return now - *ago;
  const auto at = parse_iso8601(text.size() == 10 ? text + "T00:00:00Z" : text);
  if (at) return *at;
  return invalid(option + ": invalid time '" + text +
                 "': use 24h, 2026-11-20 or 2026-11-20T09:45:00Z");
}

struct NameAndValue {
  std::string name, value;
};
// Splits at the last separator, since names may contain it.
Result<NameAndValue> split_last(const std::string& option, const std::string& text, char at,
                                const char* form) {
  const size_t found = text.rfind(at);
  if (found == std::string::npos || found == 0 || found + 1 == text.size())
    return invalid(option + ": invalid '" + text + "': use " + form);
  return NameAndValue{text.substr(0, found), text.substr(found + 1)};
}

Result<double> finite_number(const std::string& option, const std::string& text) {
  const auto number = parse_double(text);
  if (!number || !std::isfinite(*number))
    return invalid(option + ": invalid number '" + text + "'");
  return *number;
}

// Parses NAME=VCPUS,MEMORY_GIB,GPUS.
Result<Json> added_machine(const std::string& option, const std::string& text) {
  constexpr const char* kForm = "NAME=VCPUS,MEMORY_GIB,GPUS, as big=96,384,8";
  const NameAndValue parts = TRY(split_last(option, text, '=', kForm));
  const auto sizes = split(parts.value, ',');
  if (sizes.size() < 2 || sizes.size() > 3)
    return invalid(option + ": invalid size '" + parts.value + "': use " + kForm);
  const double cpus = TRY(finite_number(option, std::string(sizes[0])));
  const double gib = TRY(finite_number(option, std::string(sizes[1])));
  const double gpus = sizes.size() == 3 ? TRY(finite_number(option, std::string(sizes[2]))) : 0;
  constexpr double kGibMax = 1'048'576, kGpusMax = 10'000;
  if (cpus <= 0 || gib < 0 || gib > kGibMax || gpus < 0 || gpus > kGpusMax ||
      gpus != std::floor(gpus))
    return invalid(option + ": invalid size '" + parts.value + "': use " + kForm);
  return Json{{"Kind", "AddMachines"},
              {"Name", parts.name},
              {"Cpus", cpus},
              {"MemoryInBytes", int64_t(gib * double(int64_t{1} << 30))},
              {"Gpus", int64_t(gpus)}};
}

// Parses COUNTxTYPE: "2xml.m5.4xlarge".
Result<Json> added_machines(const std::string& option, const std::string& text) {
  const size_t times = text.find('x');
  const auto count = parse_int(std::string_view(text).substr(0, times));
  if (times == std::string::npos || !count || times + 1 == text.size())
    return invalid(option + ": invalid '" + text + "': use COUNTxTYPE, as 2xml.m5.4xlarge");
  return Json{
      {"Kind", "AddMachines"}, {"MachineCount", *count}, {"InstanceType", text.substr(times + 1)}};
}

// Parses NAME:policy=fair or NAME:priority=5.
Result<Json> changed_queue(const std::string& option, const std::string& text) {
  constexpr const char* kForm = "NAME:policy=fifo|fair|quota or NAME:priority=NUMBER";
  const NameAndValue setting = TRY(split_last(option, text, '=', kForm));
  const NameAndValue queue = TRY(split_last(option, setting.name, ':', kForm));
  if (queue.value == "policy")
    return Json{{"Kind", "SetPolicy"}, {"Name", queue.name}, {"Policy", setting.value}};
  if (queue.value != "priority")
    return invalid(option + ": unknown setting '" + queue.value + "': use " + kForm);
  const double priority = TRY(finite_number(option, setting.value));
  return Json{{"Kind", "SetPriority"}, {"Name", queue.name}, {"Value", priority}};
}

Result<Json> changed_weight(const std::string& option, const std::string& text) {
  constexpr const char* kForm = "QUEUE/SHARE=WEIGHT";
  const NameAndValue weight = TRY(split_last(option, text, '=', kForm));
  const size_t slash = weight.name.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == weight.name.size())
    return invalid(option + ": invalid '" + text + "': use " + kForm);
  const double value = TRY(finite_number(option, weight.value));
  return Json{{"Kind", "SetWeight"},
              {"Name", weight.name.substr(0, slash)},
              {"Share", weight.name.substr(slash + 1)},
              {"Value", value}};
}

Result<Json> change_of(const std::string& option, const std::string& value) {
  if (option == "--add-machine") return added_machine(option, value);
  if (option == "--machines") return added_machines(option, value);
  if (option == "--remove-machine") return Json{{"Kind", "RemoveMachine"}, {"Name", value}};
  if (option == "--queue") return changed_queue(option, value);
  if (option == "--weight") return changed_weight(option, value);
  if (option == "--submit-rate") {
    const double rate = TRY(finite_number(option, value));
    return Json{{"Kind", "SetSubmitRate"}, {"Value", rate}};
  }
  const NameAndValue limit = TRY(split_last(option, value, '=', "NAME=NUMBER"));
  const double total = TRY(finite_number(option, limit.value));
  return Json{{"Kind", "SetLimit"}, {"Name", limit.name}, {"Value", total}};
}

bool is_change(const std::string& option) {
  return option == "--add-machine" || option == "--machines" || option == "--remove-machine" ||
         option == "--queue" || option == "--weight" || option == "--limit" ||
         option == "--submit-rate";
}

// Adds each change to the --variant before it, or to the variant "changed" if there is none.
Result<Json> variants_of(const Arguments& arguments) {
  Json variants = Json::array();
  for (const auto& [option, value] : arguments.ordered) {
    if (option == "--variant") variants.push_back({{"Name", value}, {"Changes", Json::array()}});
    if (!is_change(option)) continue;
    if (variants.empty()) variants.push_back({{"Name", "changed"}, {"Changes", Json::array()}});
    variants.back()["Changes"].push_back(TRY(change_of(option, value)));
  }
  return variants;
}

Result<Json> request_of(const Arguments& arguments, Instant now) {
  const Instant end = TRY(parse_point("--until", arguments.value("--until", "0s"), now));
  const Instant begin = TRY(parse_point("--since", arguments.value("--since", "24h"), now));
  if (end <= begin)
    return invalid("--until, " + to_iso8601(end, false) + ", must be later than --since, " +
                   to_iso8601(begin, false));
  const auto variants = TRY(variants_of(arguments));
  Json request{
      {"PeriodStart", to_seconds(begin)}, {"PeriodEnd", to_seconds(end)}, {"Variants", variants}};
  if (const auto jobs = TRY(arguments.number("--jobs"))) request["MostAffectedCount"] = *jobs;
  return request;
}

// Repeats the call until the replay is complete, and draws a bar on a terminal.
Result<Json> replayed(CommandContext& context, Json request) {
  std::string drawn;
  const auto clear = [&] {
    if (!drawn.empty()) context.terminal.write_error("\r\033[K");
    drawn.clear();
  };
  context.terminal.watch_interrupts();
  for (;;) {
    auto answer = context.client.call(client::Service::trainyard, "ReplayJobs", request);
    if (!answer || answer->value("Completed", false)) {
      clear();
      return answer;
    }
    const std::string id = TRY(string_at(*answer, "ReplayId"));
    request = {{"ReplayId", id}};
    if (context.error_style.live) {
      const double progress = answer->value("Progress", 0.0);
      drawn = "\r\033[Kreplaying " + bar(context.error_style, progress, kReplayBarWidth) + " " +
              std::to_string(int(progress * 100)) + "%";
      context.terminal.write_error(drawn);
    }
    if (context.terminal.wait(Duration{}, false, -1).interrupted) {
      clear();
      return cancelled("the replay was interrupted");
    }
  }
}

}  // namespace

Result<int> replay_command(CommandContext& context, const Arguments& arguments) {
  const Json request = TRY(request_of(arguments, context.clock.now()));
  const Json answer = TRY(replayed(context, request));
  TRY(context.terminal.write(arguments.has("--json") ? dump(answer, 2) + "\n"
                                                     : replay_page(context.style, answer)));
  return 0;
}

}  // namespace trainyard::cli
