#include "cli/arguments.hpp"

#include <algorithm>

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

const Option* find_option(const Form& form, const std::string& name) {
  for (const Option& option : form.options)
    if (option.name == name || (!option.brief.empty() && option.brief == name)) return &option;
  return nullptr;
}

std::vector<std::string> option_names(const Form& form) {
  std::vector<std::string> names{"--help"};
  for (const Option& option : form.options) names.push_back(option.name);
  return names;
}

std::string usage(const Form& form) {
  std::string text = "trainyard " + form.command;
  for (const auto& operand : form.operands) text += " " + operand;
  if (!form.options.empty()) text += " [options]";
  return text;
}

}  // namespace

std::string Arguments::value(const std::string& name, const std::string& otherwise) const {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

Result<std::optional<int64_t>> Arguments::number(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) return std::optional<int64_t>();
  return std::optional<int64_t>(TRY(parse_int(found->second).in(name)));
}

Result<std::optional<Duration>> Arguments::duration(const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end()) return std::optional<Duration>();
  return std::optional<Duration>(TRY(parse_duration(found->second).in(name)));
}

Result<Arguments> read_arguments(const Form& form, const std::vector<std::string>& words) {
  Arguments arguments;
  arguments.command = form.command;
  const bool takes_all = !form.operands.empty() && form.operands.back().ends_with("..]");
  bool options_are_over = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!options_are_over && word == "--") {
      options_are_over = true;
      continue;
    }
    if (options_are_over || word == "-" || !word.starts_with('-')) {
      arguments.operands.push_back(word);
      continue;
    }
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    if (name == "--help" || name == "-h") {
      arguments.help = true;
      return arguments;
    }
    const Option* option = find_option(form, name);
    if (!option) {
      const std::string near = nearest(name, option_names(form));
      return invalid("unknown option '" + name + "'" +
                     (near.empty() ? "" : "; did you mean " + near + "?") + " (`trainyard " +
                     form.command + " --help` lists the options)");
    }
    if (!option->value) {
      if (equals != std::string::npos) return invalid(name + " takes no value");
      arguments.flags.insert(option->name);
    } else if (equals != std::string::npos) {
      arguments.ordered.emplace_back(option->name, word.substr(equals + 1));
    } else if (i + 1 == words.size()) {
      return invalid(name + " needs a value. Usage: " + usage(form));
    } else {
      arguments.ordered.emplace_back(option->name, words[++i]);
    }
  }
  for (const auto& [name, value] : arguments.ordered) arguments.values[name] = value;
  size_t needed = 0;
  for (const auto& operand : form.operands) needed += !operand.starts_with('[');
  if (arguments.operands.size() < needed)
    return invalid("missing argument " + form.operands[arguments.operands.size()] +
                   ". Usage: " + usage(form));
  if (!takes_all && arguments.operands.size() > form.operands.size())
    return invalid("unexpected argument '" + arguments.operands[form.operands.size()] +
                   "'. Usage: " + usage(form));
  return arguments;
}

Result<Duration> parse_duration(const std::string& text) {
  const size_t end = text.find_first_not_of("0123456789");
  const std::string unit = end == std::string::npos ? "s" : text.substr(end);
  const auto number = parse_int(text.substr(0, end));
  const int64_t seconds = unit == "s"   ? 1
                          : unit == "m" ? 60
                          : unit == "h" ? 3600
                          : unit == "d" ? 86400
                                        : 0;
  constexpr int64_t kNumberMax = 1'000'000;  // in any unit: longer than any useful duration
  if (!number || seconds == 0 || *number > kNumberMax)
    return invalid("invalid duration '" + text + "': use 90s, 15m, 2h or 1d");
  return Duration(*number * seconds * 1000);
}

std::string help_of(const Form& form) {
  const OutputStyle style{.columns = kHelpColumns};
  std::string out =
      paragraph(style, "usage: " + usage(form)) + "\n" + paragraph(style, form.summary);
  if (!form.text.empty()) out += "\n" + paragraph(style, form.text);
  int widest = 0;
  const auto left = [](const Option& option) {
    return "  " + (option.brief.empty() ? "" : option.brief + ", ") + option.name + "  ";
  };
  for (const Option& option : form.options) widest = std::max(widest, width_of(left(option)));
  if (!form.options.empty()) out += "\n";
  for (const Option& option : form.options)
    out += paragraph(style, option.meaning, Paint::none, left(option), widest);
  if (!form.examples.empty()) out += "\nexamples:\n";
  for (const auto& example : form.examples) out += "  " + example + "\n";
  return out;
}

}  // namespace trainyard::cli
