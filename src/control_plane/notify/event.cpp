#include "notify/event.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.hpp"

namespace trainyard::notify {
namespace {

constexpr size_t kPathsMax = 100;             // AWS's limit for a template
constexpr size_t kPathStepsMax = 100;         // of one path
constexpr size_t kInputBytesMax = 256 << 10;  // of a template's result

bool is_path_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

struct Variables {
  const Target& target;
  const Json& event;
  const std::string& rule_arn;
  Instant now;

  // Returns nullopt for an unknown variable.
  std::optional<Json> find(const std::string& name) const {
    if (name == "aws.events.rule-arn") return Json(rule_arn);
    if (name == "aws.events.rule-name") return Json(name_of_arn(rule_arn));
    if (name == "aws.events.event.ingestion-time") return Json(to_iso8601(now));
    if (name == "aws.events.event" || name == "aws.events.event.json") return event;
    const auto path = target.paths.find(name);
    if (path == target.paths.end()) return std::nullopt;
    const Json* found = value_at(event, path->second);
    return found ? *found : Json();
  }
};

// Returns a value for use within quotes: escaped text.
std::string in_quotes(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : dump(value);
  const std::string quoted = dump(Json(text));
  return quoted.substr(1, quoted.size() - 2);
}

std::string filled(std::string_view pattern, const Variables& variables) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < pattern.size() && out.size() < kInputBytesMax; ++i) {
    const char c = pattern[i];
    if (c == '\\' && quoted && i + 1 < pattern.size()) {
      out.append({c, pattern[++i]});
      continue;
    }
    if (c == '"') quoted = !quoted;
    const auto end = c == '<' ? pattern.find('>', i) : pattern.npos;
    if (end != pattern.npos) {
      const std::string name(pattern.substr(i + 1, end - i - 1));
      const auto value = is_path_name(name) ? variables.find(name) : std::nullopt;
      if (value) {
        out += quoted ? in_quotes(*value) : dump(*value);
        i = end;
        continue;
      }
    }
    out += c;
  }
  return out;
}

}  // namespace

Json event_json(const Event& event, const std::string& account) {
  return {{"version", "0"},
          {"id", event.id},
          {"detail-type", event.detail_type},
          {"source", event.source},
          {"account", account},
          {"time", to_iso8601(event.time, false)},
          {"region", event.region},
          {"resources", event.resources},
          {"detail", event.detail}};
}

Result<void> check_path(std::string_view path) {
  const auto wrong = [&] {
    return invalid("invalid path '" + shorten(path, 100) + "'; expected one like $.detail.state");
  };
  if (path.empty() || path[0] != '$' || (path.size() > 1 && path[1] != '.' && path[1] != '['))
    return wrong();
  size_t steps = 0;
  for (size_t at = 1; at < path.size();) {
    if (++steps > kPathStepsMax) return wrong();
    if (path[at] == '[') {
      const auto end = path.find(']', at);
      if (end == path.npos) return wrong();
      const auto index = parse_int(path.substr(at + 1, end - at - 1));
      if (!index || *index < 0) return wrong();
      at = end + 1;
      if (at < path.size() && path[at] != '.' && path[at] != '[') return wrong();
      continue;
    }
    const size_t end = std::min(path.size(), path.find_first_of(".[", at + 1));
    if (end == at + 1) return wrong();
    at = end;
  }
  return {};
}

const Json* value_at(const Json& event, std::string_view path) {
  if (!check_path(path)) return nullptr;
  const Json* found = &event;
  for (size_t at = 1; at < path.size();) {
    if (path[at] == '[') {
      const auto end = path.find(']', at);
      const auto index = parse_int(path.substr(at + 1, end - at - 1));
      if (!found->is_array() || size_t(*index) >= found->size()) return nullptr;
      found = &(*found)[size_t(*index)];
      at = end + 1;
      continue;
    }
    const size_t end = std::min(path.size(), path.find_first_of(".[", at + 1));
    const std::string name(path.substr(at + 1, end - at - 1));
    const auto member = found->is_object() ? found->find(name) : found->end();
    if (!found->is_object() || member == found->end()) return nullptr;
    found = &*member;
    at = end;
  }
  return found;
}

Result<void> check_input(const Target& target) {
  const int given = int(!target.input.empty()) + int(!target.input_path.empty()) +
                    int(!target.input_template.empty());
  if (given > 1)
    return invalid(
        "only one of Input, InputPath, or InputTransformer must be provided for target " +
        target.id);
  if (!target.input.empty() && !parse_json(target.input))
    return invalid("JSON syntax error in input for target " + target.id);
  if (!target.input_path.empty()) TRY(check_path(target.input_path).in("InputPath"));
  if (target.paths.size() > kPathsMax)
    return invalid("InputPathsMap has more than " + std::to_string(kPathsMax) + " entries");
  for (const auto& [name, path] : target.paths) {
    if (!is_path_name(name) || name.starts_with("aws."))
      return invalid("InputPathsMap: '" + shorten(name, 80) +
                     "' must have letters, digits, '_' and '-', and not begin with aws.");
    TRY(check_path(path).in("InputPathsMap"));
  }
  return {};
}

std::string input_of(const Target& target, const Json& event, const std::string& rule_arn,
                     Instant now) {
  if (!target.input.empty()) return target.input;
  if (!target.input_template.empty())
    return filled(target.input_template, {target, event, rule_arn, now});
  if (target.input_path.empty()) return dump(event);
  const Json* found = value_at(event, target.input_path);
  return found ? dump(*found) : "null";
}

}  // namespace trainyard::notify
