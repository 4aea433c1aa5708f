#include "notify/pattern.hpp"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "notify/ip_block.hpp"

namespace trainyard::notify {
namespace pattern_parts {

enum class Test {
  equals,
  prefix,
  suffix,
  equals_ignoring_case,
  prefix_ignoring_case,
  suffix_ignoring_case,
  wildcard,
  numeric,
  exists,
  absent,
  cidr,
  none_of
};

// The bounds of a number; nullopt: no bound on this side.
struct Bounds {
  std::optional<double> low, high;
  bool low_included = false, high_included = false;
  bool contains(double value) const {
    if (low && (value < *low || (value == *low && !low_included))) return false;
    return !high || value < *high || (value == *high && high_included);
  }
};

struct Matcher {
  Test test = Test::equals;
  Json value = {};        // for equals
  std::string text = {};  // for comparisons of texts; in lower case where case is ignored
  Bounds bounds = {};
  IpBlock block = {};
  std::vector<Matcher> excluded = {};  // for none_of
};

}  // namespace pattern_parts

using pattern_parts::Bounds;
using pattern_parts::Matcher;
using pattern_parts::Test;

struct Pattern::Object {
  struct Field {
    std::string name;
    std::vector<Matcher> values;  // of a leaf
    std::unique_ptr<Object> object;
  };
  std::vector<Field> fields;
  std::vector<std::vector<Object>> alternatives;  // each list: one "$or"
};

namespace {

using Object = Pattern::Object;

constexpr double kNumberMax = 5e9;  // the largest number that is compared, as documented by AWS

class Compiler {
 public:
  Result<void> read(const Json& json, const std::string& place, size_t depth, Object& out) {
    if (depth > Pattern::kDepthMax)
      return exhausted("the pattern has more than " + std::to_string(Pattern::kDepthMax) +
                       " nested objects");
    if (json.empty()) return invalid(name_of(place) + " must not be an empty object");
    for (const auto& [name, value] : json.items()) {
      if (name == "$or" && is_alternatives(value)) {
        auto& list = out.alternatives.emplace_back();
        for (const Json& each : value) {
          TRY(count());
          TRY(read(each, place, depth + 1, list.emplace_back()));
        }
        continue;
      }
      TRY(count());
      const std::string inner = place.empty() ? name : place + "." + name;
      Object::Field field{name, {}, nullptr};
      if (value.is_object()) {
        field.object = std::make_unique<Object>();
        TRY(read(value, inner, depth + 1, *field.object));
      } else if (value.is_array()) {
        if (value.empty()) return invalid(name_of(inner) + " must not be an empty list");
        for (const Json& each : value) field.values.push_back(TRY(matcher(each, inner)));
      } else {
        return invalid("\"" + inner + "\" must be an object or an array");
      }
      out.fields.push_back(std::move(field));
    }
    return {};
  }

 private:
  static std::string name_of(const std::string& place) {
    return place.empty() ? "the pattern" : "\"" + place + "\"";
  }

  // With another content, "$or" is a field of this name, as on AWS.
  static bool is_alternatives(const Json& value) {
    if (!value.is_array() || value.size() < 2) return false;
    for (const Json& each : value)
      if (!each.is_object() || each.empty()) return false;
    return true;
  }

  Result<void> count() {
    if (++count_ > Pattern::kValuesMax)
      return exhausted("the pattern has more than " + std::to_string(Pattern::kValuesMax) +
                       " fields and values");
    return {};
  }

  Result<Matcher> matcher(const Json& json, const std::string& place) {
    TRY(count());
    if (json.is_array()) return invalid(name_of(place) + ": a list in a list is not a value");
    if (!json.is_object()) return Matcher{.test = Test::equals, .value = json};
    if (json.size() != 1)
      return invalid(name_of(place) + ": an operator is an object with one member");
    const std::string name = json.begin().key();
    const Json& value = json.begin().value();
    if (name == "anything-but") return anything_but(value, place);
    if (name == "exists") {
      if (!value.is_boolean())
        return invalid(name_of(place) + ": \"exists\" must be true or false");
      return Matcher{.test = value.get<bool>() ? Test::exists : Test::absent};
    }
    if (name == "numeric") return numeric(value, place);
    if (name == "cidr") {
      if (!value.is_string()) return invalid(name_of(place) + ": \"cidr\" must be a text");
      const auto block =
          TRY(parse_ip_block(value.get_ref<const std::string&>()).in(name_of(place)));
      return Matcher{.test = Test::cidr, .block = block};
    }
    return text_operator(name, value, place);
  }

  Result<Matcher> text_operator(const std::string& name, const Json& value,
                                const std::string& place) {
    if (name == "prefix" || name == "suffix") {
      const bool prefix = name == "prefix";
      if (value.is_object() && value.size() == 1 && value.contains("equals-ignore-case") &&
          value["equals-ignore-case"].is_string())
        return Matcher{.test = prefix ? Test::prefix_ignoring_case : Test::suffix_ignoring_case,
                       .text = to_lower(value["equals-ignore-case"].get_ref<const std::string&>())};
      if (!value.is_string()) return invalid(name_of(place) + ": \"" + name + "\" must be a text");
      return Matcher{.test = prefix ? Test::prefix : Test::suffix, .text = value};
    }
    if (name != "equals-ignore-case" && name != "wildcard")
      return invalid(name_of(place) + ": unknown operator '" + shorten(name, 80) + "'");
    if (!value.is_string()) return invalid(name_of(place) + ": \"" + name + "\" must be a text");
    const auto& text = value.get_ref<const std::string&>();
    if (name == "equals-ignore-case")
      return Matcher{.test = Test::equals_ignoring_case, .text = to_lower(text)};
    TRY(check_wildcard(text, place));
    return Matcher{.test = Test::wildcard, .text = text};
  }

  Result<void> check_wildcard(std::string_view text, const std::string& place) {
    bool star = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '*') {
        if (star) return invalid(name_of(place) + ": consecutive wildcards");
        star = true;
        continue;
      }
      star = false;
      if (text[i] != '\\') continue;
      if (++i == text.size() || (text[i] != '*' && text[i] != '\\'))
        return invalid(name_of(place) + ": a backslash of a wildcard must precede '*' or '\\'");
    }
    return {};
  }

  Result<Matcher> anything_but(const Json& value, const std::string& place) {
    Matcher out{.test = Test::none_of};
    const auto add = [&](const Json& each) -> Result<void> {
      TRY(count());
      if (!each.is_string() && !each.is_number())
        return invalid(name_of(place) + ": \"anything-but\" takes texts or numbers");
      out.excluded.push_back(Matcher{.test = Test::equals, .value = each});
      return {};
    };
    if (value.is_object()) {
      if (value.size() != 1)
        return invalid(name_of(place) + ": \"anything-but\" takes one operator");
      const std::string name = value.begin().key();
      const Json& of_it = value.begin().value();
      const Json list = of_it.is_array() ? of_it : Json::array({of_it});
      for (const Json& each : list) {
        TRY(count());
        out.excluded.push_back(TRY(text_operator(name, each, place)));
      }
    } else if (value.is_array()) {
      for (const Json& each : value) TRY(add(each));
    } else {
      TRY(add(value));
    }
    if (out.excluded.empty())
      return invalid(name_of(place) + ": \"anything-but\" must not be empty");
    return out;
  }

  Result<Matcher> numeric(const Json& value, const std::string& place) {
    const auto wrong = [&](const char* why) {
      return invalid(name_of(place) + ": \"numeric\" " + why);
    };
    if (!value.is_array() || (value.size() != 2 && value.size() != 4))
      return wrong("must be [\"<\", NUMBER] or a range of two such pairs");
    Matcher out{.test = Test::numeric};
    for (size_t i = 0; i < value.size(); i += 2) {
      if (!value[i].is_string() || !value[i + 1].is_number())
        return wrong("has operators and numbers in turn");
      const auto& name = value[i].get_ref<const std::string&>();
      const double number = value[i + 1].get<double>();
      if (!(std::abs(number) <= kNumberMax)) return wrong("takes numbers from -5e9 to 5e9");
      const bool lower_bound = name == ">" || name == ">=",
                 upper_bound = name == "<" || name == "<=";
      if (name == "=" && value.size() == 2) {
        out.bounds = {number, number, true, true};
      } else if (lower_bound && !out.bounds.low) {
        out.bounds.low = number;
        out.bounds.low_included = name == ">=";
      } else if (upper_bound && !out.bounds.high) {
        out.bounds.high = number;
        out.bounds.high_included = name == "<=";
      } else {
        return wrong("has an unknown or repeated operator");
      }
    }
    const Bounds& bounds = out.bounds;
    if (bounds.low && bounds.high &&
        (*bounds.low > *bounds.high ||
         (*bounds.low == *bounds.high && !(bounds.low_included && bounds.high_included))))
      return wrong("is a range that contains no number");
    return out;
  }

  size_t count_ = 0;
};

// Compares in time proportional at most to the product of both lengths; `steps` counts the time.
bool wildcard_matches(std::string_view pattern, std::string_view text, uint64_t& steps) {
  size_t at = 0, in = 0;                         // the positions in the pattern and in the text
  size_t after_star = pattern.npos, resume = 0;  // the positions to continue at after a mismatch
  while (in < text.size()) {
    if (++steps > Pattern::kStepsMax) return false;
    if (at < pattern.size() && pattern[at] == '*') {
      after_star = ++at;
      resume = in;
      continue;
    }
    size_t literal = at;
    if (literal < pattern.size() && pattern[literal] == '\\') ++literal;
    if (literal < pattern.size() && pattern[literal] == text[in]) {
      at = literal + 1;
      ++in;
    } else if (after_star != pattern.npos) {
      at = after_star;
      in = ++resume;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

class Matching {
 public:
  bool object(const Object& wanted, const Json& found) {
    if (!step()) return false;
    if (found.is_array()) {
      bool fields = false;
      for (const Json& each : found) {
        if (!each.is_object() && !each.is_array()) continue;
        fields = true;
        if (object(wanted, each)) return true;
      }
      return !fields && object(wanted, Json::object());
    }
    for (const auto& field : wanted.fields)
      if (!this->field(field, found)) return false;
    for (const auto& list : wanted.alternatives) {
      bool any = false;
      for (const Object& each : list) any = any || object(each, found);
      if (!any) return false;
    }
    return true;
  }
  bool too_costly() const { return steps_ > Pattern::kStepsMax; }

 private:
  bool step() { return ++steps_ <= Pattern::kStepsMax; }

  bool field(const Object::Field& wanted, const Json& in) {
    static const Json kNone = Json::object();
    const auto found = in.is_object() ? in.find(wanted.name) : in.end();
    const bool present = in.is_object() && found != in.end();
    // An absent object has no fields: {"exists": false} below it matches.
    if (wanted.object)
      return object(*wanted.object,
                    present && (found->is_object() || found->is_array()) ? *found : kNone);
    for (const Matcher& each : wanted.values)
      if (present ? leaf(each, *found) : each.test == Test::absent) return true;
    return false;
  }

  // An array matches if one of its elements matches. Objects are not leaves.
  bool leaf(const Matcher& wanted, const Json& found) {
    if (!step()) return false;
    if (found.is_object()) return wanted.test == Test::absent;
    if (!found.is_array()) return wanted.test != Test::absent && value(wanted, found);
    if (wanted.test == Test::absent) return found.empty();
    for (const Json& each : found)
      if (leaf(wanted, each)) return true;
    return false;
  }

  bool value(const Matcher& wanted, const Json& found) {
    if (!step()) return false;
    switch (wanted.test) {
      case Test::equals:
        return found.is_number() == wanted.value.is_number() &&
               found.is_number_float() == wanted.value.is_number_float() && found == wanted.value;
      case Test::exists:
        return true;
      case Test::absent:
        return false;
      case Test::numeric:
        return found.is_number() && std::abs(found.get<double>()) <= kNumberMax &&
               wanted.bounds.contains(found.get<double>());
      case Test::none_of:
        for (const Matcher& each : wanted.excluded)
          if (value(each, found)) return false;
        return true;
      default:
        return found.is_string() && text(wanted, found.get_ref<const std::string&>());
    }
  }

  bool text(const Matcher& wanted, const std::string& found) {
    switch (wanted.test) {
      case Test::prefix:
        return found.starts_with(wanted.text);
      case Test::suffix:
        return found.ends_with(wanted.text);
      case Test::equals_ignoring_case:
        return found.size() == wanted.text.size() && to_lower(found) == wanted.text;
      case Test::prefix_ignoring_case:
        return to_lower(std::string_view(found).substr(0, wanted.text.size())) == wanted.text;
      case Test::suffix_ignoring_case:
        return found.size() >= wanted.text.size() &&
               to_lower(std::string_view(found).substr(found.size() - wanted.text.size())) ==
                   wanted.text;
      case Test::wildcard:
        return wildcard_matches(wanted.text, found, steps_);
      case Test::cidr: {
        const auto address = parse_ip(found);
        return address && wanted.block.contains(*address);
      }
      default:
        return false;
    }
  }

  uint64_t steps_ = 0;
};

}  // namespace

Result<Pattern> Pattern::compile(std::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max)
    return exhausted("the pattern has more than " + std::to_string(bytes_max) + " bytes");
  const Json json = TRY(parse_json(text));
  if (!json.is_object()) return invalid("the pattern must be an object");
  auto root = std::make_shared<Object>();
  TRY(Compiler().read(json, "", 0, *root));
  Pattern pattern;
  pattern.root_ = std::move(root);
  return pattern;
}

Result<bool> Pattern::matches(const Json& document) const {
  Matching matching;
  const bool matched = matching.object(*root_, document);
  if (matching.too_costly())
    return exhausted("comparing the document with the pattern takes more than " +
                     std::to_string(kStepsMax) + " steps");
  return matched;
}

}  // namespace trainyard::notify
