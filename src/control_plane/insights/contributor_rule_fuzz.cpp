// decoder: src/control_plane/insights/contributor_rule.cpp
//
// Applies any rule to any message. Input: RULE newline MESSAGE; the rule has no newline.
#include <cmath>

#include "base/check.hpp"
#include "insights/contributor_rule.hpp"

using namespace trainyard::insights;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t newline = bytes.find('\n');
  const auto rule = ContributorRule::parse(bytes.substr(0, newline));
  if (!rule) {
    CHECK(rule.error().message.starts_with("Invalid "), "parse() returns only explained errors");
    return 0;
  }
  const auto found =
      rule->of(newline == std::string_view::npos ? std::string_view() : bytes.substr(newline + 1));
  if (found)
    CHECK(found->keys.size() == rule->key_labels().size() && std::isfinite(found->value),
          "a contributor has each key");
  return 0;
}
