#include "exposition/family.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.hpp"

namespace trainyard::exposition {

void Family::sample(Labels labels, double value) {
  samples.push_back({"", nullptr, std::move(labels), value});
}

void Family::sample(SharedLabels shared, Labels labels, double value) {
  samples.push_back({"", std::move(shared), std::move(labels), value});
}

void Family::histogram(const Labels& labels, const Histogram& histogram) {
  const auto shared = std::make_shared<const Labels>(labels);
  for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    Labels bound = {{"le", number_text(Histogram::kBounds[i])}};
    samples.push_back({"_bucket", shared, std::move(bound), double(histogram.count_to(i))});
  }
  const auto all = double(histogram.count_to(Histogram::kBounds.size()));
  Labels infinite = {{"le", "+Inf"}};
  samples.push_back({"_bucket", shared, std::move(infinite), all});
  samples.push_back({"_sum", shared, {}, histogram.sum()});
  samples.push_back({"_count", shared, {}, all});
}

Family& Families::add(std::string_view name, FamilyType type, std::string_view help) {
  CHECK(is_metric_name(name), "the name of a metric is valid");
  CHECK((type == FamilyType::counter) == name.ends_with("_total"),
        "the names of counters, and of no others, end in _total");
  Family& family = families_.emplace_back();
  family.name = name;
  family.type = type;
  family.help = help;
  return family;
}

void Families::gauge(std::string_view name, std::string_view help, double value) {
  add(name, FamilyType::gauge, help).sample(Labels(), value);
}

void Families::counter(std::string_view name, std::string_view help, double value) {
  add(name, FamilyType::counter, help).sample(Labels(), value);
}

size_t Families::samples() const {
  size_t count = 0;
  for (const Family& family : families_) count += family.samples.size();
  return count;
}

bool is_metric_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
  constexpr std::string_view kDigits = "0123456789";
  if (name.empty() || kDigits.find(name.front()) != kDigits.npos) return false;
  return std::ranges::all_of(name, [&](char c) {
    return kLetters.find(c) != kLetters.npos || kDigits.find(c) != kDigits.npos;
  });
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  const double magnitude = std::abs(value);
  // Writes no exponent while the number stays readable: "12000000", not "1.2e+07".
  const bool fixed = magnitude == 0 || (magnitude >= 1e-5 && magnitude < 1e15);
  char digits[64];
  const auto end =
      fixed ? std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed)
            : std::to_chars(digits, digits + sizeof digits, value);
  return std::string(digits, end.ptr);
}

}  // namespace trainyard::exposition
