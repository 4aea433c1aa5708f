#include "insights/functions.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace trainyard::insights {
namespace {

using Arguments = std::span<const Value>;

// Texts of a function are counted in characters, not in bytes.
bool continues(char c) { return (uint8_t(c) & 0xc0) == 0x80; }
size_t characters_of(std::string_view text) {
  return size_t(std::ranges::count_if(text, [](char c) { return !continues(c); }));
}
// The byte at which character `index` begins.
size_t byte_at(std::string_view text, size_t index) {
  for (size_t at = 0; at < text.size(); ++at)
    if (!continues(text[at]) && index-- == 0) return at;
  return text.size();
}

Value of_number(Arguments a, double (*f)(double)) {
  const auto number = a[0].number();
  return number ? Value::of_number(f(*number)) : Value();
}

Value call_abs(Arguments a, const CallContext&) {
  return of_number(a, [](double x) { return std::fabs(x); });
}
Value call_ceil(Arguments a, const CallContext&) {
  return of_number(a, [](double x) { return std::ceil(x); });
}
Value call_floor(Arguments a, const CallContext&) {
  return of_number(a, [](double x) { return std::floor(x); });
}
Value call_sqrt(Arguments a, const CallContext&) {
  return of_number(a, [](double x) { return std::sqrt(x); });
}
Value call_log(Arguments a, const CallContext&) {
  return of_number(a, [](double x) { return std::log(x); });
}

Value extreme(Arguments a, bool greatest) {
  Value found;
  for (const Value& each : a) {
    if (!each.number()) continue;
    if (found.nothing() || (*each.number() > *found.number()) == greatest) found = each;
  }
  return found;
}
Value call_greatest(Arguments a, const CallContext&) { return extreme(a, true); }
Value call_least(Arguments a, const CallContext&) { return extreme(a, false); }

Value call_strlen(Arguments a, const CallContext&) {
  return a[0].nothing() ? Value() : Value::of_number(double(characters_of(a[0].text())));
}
Value call_lower(Arguments a, const CallContext&) {
  return a[0].nothing() ? Value() : Value::of_text(to_lower(a[0].text()));
}
Value call_upper(Arguments a, const CallContext&) {
  return a[0].nothing() ? Value() : Value::of_text(to_upper(a[0].text()));
}

Value call_substr(Arguments a, const CallContext&) {
  const auto start = a[1].number();
  const auto length = a.size() > 2 ? a[2].number() : std::optional(double(kTextBytesMax));
  if (a[0].nothing() || !start || !length || *start < 0 || *length < 0) return {};
  const std::string text = a[0].text();
  const double characters = double(characters_of(text));
  if (*start >= characters) return Value::of_text("");
  const size_t begin = byte_at(text, size_t(*start));
  const std::string rest = text.substr(begin);
  return Value::of_text(rest.substr(0, byte_at(rest, size_t(std::min(*length, characters)))));
}

Value call_concat(Arguments a, const CallContext&) {
  std::string text;
  for (const Value& each : a) {
    text += each.text();
    if (text.size() > kTextBytesMax) return {};
  }
  return Value::of_text(std::move(text));
}

// Removes blanks, or the characters of the second argument.
Value trimmed(Arguments a, bool left, bool right) {
  if (a[0].nothing()) return {};
  const std::string text = a[0].text();
  const std::string which = a.size() > 1 ? a[1].text() : " \t\r\n\f\v";
  size_t begin = left ? std::min(text.find_first_not_of(which), text.size()) : 0;
  size_t end = text.size();
  if (right) {
    const size_t last = text.find_last_not_of(which);
    end = last == std::string::npos ? begin : last + 1;
  }
  return Value::of_text(text.substr(begin, std::max(begin, end) - begin));
}
Value call_trim(Arguments a, const CallContext&) { return trimmed(a, true, true); }
Value call_ltrim(Arguments a, const CallContext&) { return trimmed(a, true, false); }
Value call_rtrim(Arguments a, const CallContext&) { return trimmed(a, false, true); }

Value call_replace(Arguments a, const CallContext&) {
  if (a[0].nothing()) return {};
  const std::string text = a[0].text(), what = a[1].text(), by = a[2].text();
  if (what.empty()) return a[0];
  std::string out;
  size_t at = 0;
  for (size_t found; (found = text.find(what, at)) != std::string::npos; at = found + what.size()) {
    out.append(text, at, found - at).append(by);
    if (out.size() > kTextBytesMax) return {};
  }
  return Value::of_text(out.append(text, at, std::string::npos));
}

Value call_strcontains(Arguments a, const CallContext&) {
  if (a[0].nothing() || a[1].nothing()) return {};
  return Value::of_condition(a[0].text().find(a[1].text()) != std::string::npos);
}

Value call_coalesce(Arguments a, const CallContext&) {
  for (const Value& each : a)
    if (!each.nothing()) return each;
  return {};
}
Value call_ispresent(Arguments a, const CallContext&) {
  return Value::of_condition(!a[0].nothing());
}
Value call_isempty(Arguments a, const CallContext&) {
  return Value::of_condition(a[0].nothing() || a[0].text().empty());
}
Value call_isblank(Arguments a, const CallContext&) {
  return Value::of_condition(a[0].nothing() || trim(a[0].text()).empty());
}

// -- time

// Periods of seconds and longer begin at multiples of their length since 1970 UTC.
std::optional<double> rounded(const Value& at, const Value& period, bool up) {
  const auto time = at.number(), length = period.number();
  if (!time || !length || *length < 1) return {};
  return (up ? std::ceil(*time / *length) : std::floor(*time / *length)) * *length;
}
Value call_datefloor(Arguments a, const CallContext&) {
  const auto at = rounded(a[0], a[1], false);
  return at ? Value::of_instant(*at) : Value();
}
Value call_dateceil(Arguments a, const CallContext&) {
  const auto at = rounded(a[0], a[1], true);
  return at ? Value::of_instant(*at) : Value();
}
Value call_bin(Arguments a, const CallContext& context) {
  const auto at = rounded(Value::of_number(context.at), a[0], false);
  return at ? Value::of_instant(*at) : Value();
}
Value call_frommillis(Arguments a, const CallContext&) {
  return a[0].number() ? Value::of_instant(*a[0].number()) : Value();
}
Value call_tomillis(Arguments a, const CallContext&) {
  return a[0].kind() == Value::Kind::instant ? Value::of_number(*a[0].number()) : Value();
}
Value call_now(Arguments, const CallContext& context) {
  return Value::of_number(std::floor(to_seconds(context.now)));
}

// -- addresses

std::optional<uint32_t> ipv4(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) return {};
  uint32_t address = 0;
  for (const std::string_view part : parts) {
    if (part.empty() || part.size() > 3) return {};
    uint32_t byte = 0;
    for (const char c : part) {
      if (c < '0' || c > '9') return {};
      byte = byte * 10 + uint32_t(c - '0');
    }
    if (byte > 255) return {};
    address = address << 8 | byte;
  }
  return address;
}

bool is_ipv6(std::string_view text) {
  if (text.size() < 2 || text.size() > 45) return false;
  const size_t gap = text.find("::");
  if (gap != std::string_view::npos && text.find("::", gap + 1) != std::string_view::npos)
    return false;
  if ((text[0] == ':' && gap != 0) || (text.back() == ':' && gap != text.size() - 2)) return false;
  size_t groups = 0;
  const auto parts = split(text, ':');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    if (i + 1 == parts.size() && ipv4(parts[i])) {
      groups += 2;
      continue;
    }
    if (parts[i].size() > 4 ||
        parts[i].find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      return false;
    ++groups;
  }
  return gap == std::string_view::npos ? groups == 8 : groups < 8;
}

Value call_isvalidip(Arguments a, const CallContext&) {
  const std::string text = a[0].text();
  return Value::of_condition(ipv4(text).has_value() || is_ipv6(text));
}
Value call_isvalidipv4(Arguments a, const CallContext&) {
  return Value::of_condition(ipv4(a[0].text()).has_value());
}
Value call_isvalidipv6(Arguments a, const CallContext&) {
  return Value::of_condition(is_ipv6(a[0].text()));
}
Value call_isipv4insubnet(Arguments a, const CallContext&) {
  const std::string subnet = a[1].text();
  const size_t slash = subnet.find('/');
  const auto address = ipv4(a[0].text());
  const auto base = ipv4(std::string_view(subnet).substr(0, slash));
  if (slash == std::string::npos || !address || !base) return Value::of_condition(false);
  const auto bits = parse_int(std::string_view(subnet).substr(slash + 1));
  if (!bits || *bits < 0 || *bits > 32) return Value::of_condition(false);
  const uint32_t mask = *bits == 0 ? 0 : ~uint32_t{0} << (32 - *bits);
  return Value::of_condition((*address & mask) == (*base & mask));
}

constexpr Function kFunctions[] = {
    {"abs", 1, 1, call_abs},
    {"ceil", 1, 1, call_ceil},
    {"floor", 1, 1, call_floor},
    {"greatest", 1, kArgumentsMax, call_greatest},
    {"least", 1, kArgumentsMax, call_least},
    {"log", 1, 1, call_log},
    {"sqrt", 1, 1, call_sqrt},
    {"strlen", 1, 1, call_strlen},
    {"tolower", 1, 1, call_lower},
    {"lower", 1, 1, call_lower},
    {"toupper", 1, 1, call_upper},
    {"upper", 1, 1, call_upper},
    {"substr", 2, 3, call_substr},
    {"concat", 1, kArgumentsMax, call_concat},
    {"trim", 1, 2, call_trim},
    {"ltrim", 1, 2, call_ltrim},
    {"rtrim", 1, 2, call_rtrim},
    {"replace", 3, 3, call_replace},
    {"strcontains", 2, 2, call_strcontains},
    {"coalesce", 1, kArgumentsMax, call_coalesce},
    {"ispresent", 1, 1, call_ispresent},
    {"isempty", 1, 1, call_isempty},
    {"isblank", 1, 1, call_isblank},
    {"bin", 1, 1, call_bin},
    {"datefloor", 2, 2, call_datefloor},
    {"dateceil", 2, 2, call_dateceil},
    {"frommillis", 1, 1, call_frommillis},
    {"tomillis", 1, 1, call_tomillis},
    {"now", 0, 0, call_now},
    {"isvalidip", 1, 1, call_isvalidip},
    {"isvalidipv4", 1, 1, call_isvalidipv4},
    {"isipv4", 1, 1, call_isvalidipv4},
    {"isvalidipv6", 1, 1, call_isvalidipv6},
    {"isipv4insubnet", 2, 2, call_isipv4insubnet},
};

}  // namespace

const Function* find_function(std::string_view name) {
  const auto found = std::ranges::find_if(kFunctions, [&](const Function& function) {
    return equals_ignoring_case(function.name, name);
  });
  return found == std::end(kFunctions) ? nullptr : &*found;
}

}  // namespace trainyard::insights
