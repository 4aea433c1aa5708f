#include "s3/cors.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;
using Texts = std::vector<std::string>;

// Returns whether a pattern matches. It has at most one '*', which stands for any characters.
bool fits(std::string_view pattern, std::string_view text, bool ignoring_case) {
  const auto equal = [&](std::string_view a, std::string_view b) {
    return ignoring_case ? equals_ignoring_case(a, b) : a == b;
  };
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return equal(pattern, text);
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return text.size() >= before.size() + after.size() &&
         equal(text.substr(0, before.size()), before) &&
         equal(text.substr(text.size() - after.size()), after);
}

bool any_fits(const std::optional<Texts>& patterns, std::string_view text, bool ignoring_case) {
  return patterns && std::ranges::any_of(*patterns, [&](const std::string& pattern) {
           return fits(pattern, text, ignoring_case);
         });
}

bool allows(const s3::CORSRule& rule, const CorsRequest& request) {
  if (!any_fits(rule.allowed_origins, request.origin, false)) return false;
  if (!rule.allowed_methods ||
      std::ranges::find(*rule.allowed_methods, request.method) == rule.allowed_methods->end())
    return false;
  for (const auto each : split(request.headers, ','))
    if (const auto header = trim(each);
        !header.empty() && !any_fits(rule.allowed_headers, header, true))
      return false;
  return true;
}

std::string joined(const std::optional<Texts>& texts) {
  std::string list;
  if (texts)
    for (const auto& each : *texts) list.append(list.empty() ? "" : ", ").append(each);
  return list;
}

}  // namespace

const s3::CORSRule* find_rule(const s3::CORSConfiguration& cors, const CorsRequest& request) {
  if (!cors.cors_rules) return nullptr;
  for (const auto& rule : *cors.cors_rules)
    if (allows(rule, request)) return &rule;
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> cors_headers(const s3::CORSRule& rule,
                                                              const CorsRequest& request,
                                                              bool preflight) {
  std::vector<std::pair<std::string, std::string>> headers;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) headers.emplace_back(name, std::move(value));
  };
  // As on S3, a rule for all origins gives "*", with which browsers send no credentials.
  const bool all = std::ranges::find(*rule.allowed_origins, "*") != rule.allowed_origins->end();
  add("Access-Control-Allow-Origin", all ? "*" : std::string(request.origin));
  add("Access-Control-Allow-Methods", joined(rule.allowed_methods));
  if (preflight) {
    Texts names;
    for (const auto each : split(request.headers, ','))
      if (const auto name = trim(each); !name.empty()) names.push_back(to_lower(name));
    add("Access-Control-Allow-Headers", joined(names));
  }
  add("Access-Control-Expose-Headers", joined(rule.expose_headers));
  if (rule.max_age_seconds) add("Access-Control-Max-Age", std::to_string(*rule.max_age_seconds));
  if (!all) add("Access-Control-Allow-Credentials", "true");
  add("Vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method");
  return headers;
}

}  // namespace trainyard::api::s3
