#include "base/prometheus.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace trainyard {
namespace {

void append_number(std::string& out, double value) {
  char digits[32];
  // Whole numbers are written without an exponent: "12000000", not "1.2e+07".
  const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
  const auto end = whole ? std::to_chars(digits, digits + sizeof digits, int64_t(value))
                         : std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end.ptr);
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  out += out.ends_with('{') ? "" : ",";
  out.append(name).append("=\"");
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  out += '"';
}

}  // namespace

void Histogram::add(double seconds) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  counts_[size_t(bound - kBounds.begin())].fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(uint64_t(std::max(seconds, 0.0) * 1e9), std::memory_order_relaxed);
}

uint64_t Histogram::count_to(size_t index) const {
  uint64_t count = 0;
  for (size_t i = 0; i <= index; i++) count += counts_[i].load(std::memory_order_relaxed);
  return count;
}

void PrometheusText::begin(std::string_view name, std::string_view type, std::string_view help) {
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
  text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void PrometheusText::sample(std::string_view name, Labels labels, double value) {
  line(name, "", labels, "", value);
}

void PrometheusText::histogram(std::string_view name, Labels labels, const Histogram& histogram) {
  for (size_t i = 0; i < Histogram::kBounds.size(); i++) {
    std::string bound;
    append_number(bound, Histogram::kBounds[i]);
    line(name, "_bucket", labels, bound, double(histogram.count_to(i)));
  }
  const auto all = double(histogram.count_to(Histogram::kBounds.size()));
  line(name, "_bucket", labels, "+Inf", all);
  line(name, "_sum", labels, "", histogram.sum());
  line(name, "_count", labels, "", all);
}

void PrometheusText::line(std::string_view name, std::string_view suffix, Labels labels,
                          std::string_view bound, double value) {
  text_.append(name).append(suffix);
  if (labels.size() > 0 || !bound.empty()) {
    text_ += '{';
    for (const auto& [label, text] : labels) append_label(text_, label, text);
    if (!bound.empty()) append_label(text_, "le", bound);
    text_ += '}';
  }
  text_ += ' ';
  append_number(text_, value);
  text_ += '\n';
}

}  // namespace trainyard
