#include <algorithm>
#include <optional>
#include <string>

#include "collectives/launch.hpp"

// Parses JSON by hand: the collectives use no JSON library, since `pip install` also compiles them
// on users' machines, which have a compiler but no libraries. Members that are not needed are
// skipped without a check of their numbers and literals.
namespace trainyard::collectives {
namespace {

constexpr int kNestingMax = 32;  // the file has 3 levels

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    skip_space();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool at_end() {
    skip_space();
    return rest_.empty();
  }

  Result<std::string> string() {
    if (!take('"')) return invalid("a string is missing");
    std::string text;
    while (!rest_.empty() && rest_[0] != '"') {
      char each = next();
      if (static_cast<unsigned char>(each) < 0x20)
        return invalid("a control character in a string");
      if (each == '\\') each = TRY(escaped());
      text += each;
    }
    if (rest_.empty()) return invalid("a string without an end");
    next();
    return text;
  }

  Result<std::vector<std::string>> strings() {
    std::vector<std::string> all;
    if (!take('[')) return invalid("a list is missing");
    if (take(']')) return all;
    do all.push_back(TRY(string()));
    while (take(','));
    if (!take(']')) return invalid("a list without an end");
    return all;
  }

  Result<void> skip_value(int depth = 0) {
    if (depth > kNestingMax)
      return invalid("nested deeper than " + std::to_string(kNestingMax) + " levels");
    skip_space();
    if (rest_.starts_with('"')) return skip_string();
    const bool object = take('{');
    if (object || take('[')) {
      const char end = object ? '}' : ']';
      if (take(end)) return ok();
      do {
        if (object) TRY(skip_string());
        if (object && !take(':')) return invalid("a ':' is missing");
        TRY(skip_value(depth + 1));
      } while (take(','));
      return take(end) ? ok() : Result<void>(invalid(std::string("a '") + end + "' is missing"));
    }
    const size_t length = std::min(rest_.find_first_of(",]} \t\r\n"), rest_.size());
    if (length == 0) return invalid("a value is missing");
    rest_.remove_prefix(length);
    return ok();
  }

 private:
  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  char next() {
    const char each = rest_[0];
    rest_.remove_prefix(1);
    return each;
  }
  Result<void> skip_string() {
    TRY(string());
    return ok();
  }
  // Parses the character after a backslash. Characters beyond ASCII, which no host name contains,
  // become '?'.
  Result<char> escaped() {
    if (rest_.empty()) return invalid("a string without an end");
    const char letter = next();
    if (letter == 'u') {
      if (rest_.size() < 4) return invalid("a string without an end");
      unsigned code = 0;
      for (int digit = 0; digit < 4; ++digit) {
        const size_t value = std::string_view("0123456789abcdef").find(char(next() | 0x20));
        if (value == std::string_view::npos) return invalid("invalid digits after \\u");
        code = code * 16 + unsigned(value);
      }
      return code < 0x80 ? char(code) : '?';
    }
    const size_t place = std::string_view("\"\\/bfnrt").find(letter);
    if (place == std::string_view::npos) return invalid("an unknown escape in a string");
    return "\"\\/\b\f\n\r\t"[place];
  }

  std::string_view rest_;
};

Result<Hosts> hosts_from(std::vector<std::string> names, std::string_view current) {
  const auto place = std::find(names.begin(), names.end(), current);
  if (place == names.end()) return invalid("the current host is not in hosts");
  const int number = int(place - names.begin());
  return Hosts{std::move(names), number};
}

Result<Hosts> read_config(std::string_view text) {
  Reader reader(text);
  std::optional<std::vector<std::string>> hosts;
  std::optional<std::string> current;
  if (!reader.take('{')) return invalid("not a JSON object");
  if (!reader.take('}')) {
    do {
      const std::string name = TRY(reader.string());
      if (!reader.take(':')) return invalid("a ':' is missing after " + name);
      if (name == "hosts") {
        hosts = TRY(reader.strings().in(name));
      } else if (name == "current_host") {
        current = TRY(reader.string().in(name));
      } else {
        TRY(reader.skip_value().in(name));
      }
    } while (reader.take(','));
    if (!reader.take('}')) return invalid("a '}' is missing");
  }
  if (!reader.at_end()) return invalid("text after the JSON object");
  if (!hosts || !current) return invalid("hosts or current_host is missing");
  return hosts_from(*std::move(hosts), *current);
}

}  // namespace

Result<Hosts> read_hosts(std::string_view resourceconfig_json) {
  return read_config(resourceconfig_json).in("resourceconfig.json");
}

Result<Hosts> read_hosts(std::string_view names_json, std::string_view current) {
  Reader reader(names_json);
  auto names = TRY(reader.strings());
  if (!reader.at_end()) return invalid("text after the list");
  return hosts_from(std::move(names), current);
}

}  // namespace trainyard::collectives
