#include "boosting/number_ranges.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace trainyard::boosting {

std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[64];
  const double size = std::fabs(value);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto end =
      std::to_chars(text, text + sizeof text, value,
                    is_plain ? std::chars_format::fixed : std::chars_format::scientific)
          .ptr;
  std::string shown(text, end);
  if (is_plain && shown.find('.') == std::string::npos) shown += ".0";
  return shown;
}

std::string python_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const auto& each : texts) list += (list.empty() ? "'" : ", '") + each + "'";
  return "[" + list + "]";
}

bool NumberRange::contains(double value) const {
  const auto limit = [](std::string_view text) {
    return std::strtod(std::string(text).c_str(), {});
  };
  if (!least.empty() && (least_is_open ? !(value > limit(least)) : !(value >= limit(least))))
    return false;
  return most.empty() || (most_is_open ? value < limit(most) : value <= limit(most));
}

std::string NumberRange::text() const {
  const std::string start =
      least.empty() ? "(-inf, " : (least_is_open ? "(" : "[") + std::string(least) + ", ";
  return start + (most.empty() ? "+inf)" : std::string(most) + (most_is_open ? ")" : "]"));
}

}  // namespace trainyard::boosting
